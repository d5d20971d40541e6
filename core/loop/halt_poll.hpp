// SPDX-License-Identifier: Apache-2.0
//
// How long a thread that has nothing to do keeps looking before it sleeps. Waking a thread on an
// idle processor takes some 50 us on a virtual machine, more than a whole lock and unlock on the
// local store. Known as halt polling from KVM (Documentation/virt/kvm/halt-polling.rst), and
// adaptive as there: after a wait longer than looking could have shortened, the next begins with
// sleep.
#pragma once

#include <thread>

#include "dlock/clock.hpp"

namespace dlock::core {

/// One waiting thread's. The decision is pure: the time waited is handed in.
class HaltPoll {
 public:
  /// As long as a wait that is worth it. What a wake-up alone costs, half of it, was too short: who
  /// looks shares the processor with what is waited for, which is slower by that.
  static constexpr Duration kMost = std::chrono::microseconds(100);
  /// A wait of up to this is one that looking would have shortened; the wake-up is part of it.
  static constexpr Duration kReach = kMost;

  /// On one processor it never looks: nobody else could run meanwhile.
  explicit HaltPoll(unsigned processors = std::thread::hardware_concurrency())
      : most_(processors > 1 ? kMost : Duration::zero()) {}

  /// How long to look before sleep. Zero at first.
  Duration window() const noexcept { return window_; }

  /// After each wait: how long it took until there was something to do, by looking or by sleep.
  void waited(Duration time) noexcept { window_ = time <= kReach ? most_ : Duration::zero(); }

  /// Waits: by `found`, again and again, as long as the window says; then by `sleep`, which returns
  /// when there is something to do. Yields between two looks: what is waited for may need this very
  /// processor.
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
