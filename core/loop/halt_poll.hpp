// SPDX-License-Identifier: Apache-2.0
//
// HaltPoll: how long an idle thread polls before it sleeps. Waking a thread on an idle processor
// needs some 50 us on a virtual machine, more than a whole lock and unlock on the local store.
// Known as halt polling from KVM (Documentation/virt/kvm/halt-polling.rst), and adaptive as there:
// after a wait that polling could not have shortened, the next one sleeps at once.
#pragma once

#include <thread>

#include "dlock/clock.hpp"

namespace dlock::core {

/// One waiting thread's. The decision is pure: the time waited is handed in.
class HaltPoll {
 public:
  /// The longest wait that is worth polling. Half of it, the cost of a wake-up alone, was too
  /// short. A thread that polls shares the processor with the awaited thread, which is slower by
  /// that.
  static constexpr Duration kMost = std::chrono::microseconds(100);
  /// Polling would have shortened a wait of up to this time; the wake-up is part of it.
  static constexpr Duration kReach = kMost;

  /// On one processor it never polls: no other thread could run meanwhile.
  explicit HaltPoll(unsigned processors = std::thread::hardware_concurrency())
      : most_(processors > 1 ? kMost : Duration::zero()) {}

  /// Time to poll before sleep. Zero at first.
  Duration window() const noexcept { return window_; }

  /// Called after each wait, with the time until there was something to do, by polling or by sleep.
  void waited(Duration time) noexcept { window_ = time <= kReach ? most_ : Duration::zero(); }

  /// Waits: calls `found` again and again within the window, then `sleep`, which returns when there
  /// is something to do. Yields between two polls: the awaited thread may need this very processor.
  template <class Found, class Sleep>
  void wait(Found found, Sleep sleep) {
    const auto start = BoottimeClock::now();
    bool here = false;
    while (!here && BoottimeClock::now() < start + window_) {
      std::this_thread::yield();
      here = found();
    }
    if (!here) sleep();
    waited(BoottimeClock::now() - start);
  }

 private:
  Duration most_;
  Duration window_{};
};

}  // namespace dlock::core
