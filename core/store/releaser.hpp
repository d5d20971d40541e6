// SPDX-License-Identifier: Apache-2.0
//
// Releaser: carries out ReleaseFsm. Releases locks and withdraws claims in the background,
// reliably.
#pragma once

#include <list>

#include "core/fsm/release_fsm.hpp"
#include "core/loop/task_group.hpp"
#include "dlock/detail/unique_function.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::core {

/// Loop only.
class Releaser {
 public:
  /// Called once, on the loop.
  using Done = detail::UniqueFunction<void(error_code)>;

  struct Patience {
    Duration silence{};  ///< since the start, and since the last answer to any release
    Duration longest{};  ///< since the start
  };

  Releaser(Env& env, Backend& backend, TaskGroup& tasks);

  /// Starts at once: the request is on its way before any later one of this loop. `done` receives
  /// the first definite answer, or `unavailable` when `patience` is over first; the release
  /// continues. `owed_until`: until then the lock is kept from other clients while it is not
  /// released.
  void start(ClaimPtr claim, ReleaseFsm::Limits limits, Patience patience, TimePoint owed_until,
             Done done = {});

  /// The store is closing. Searches once more for late copies of released claims, now, and not
  /// again. Claims that are not released yet are still tried.
  void hurry();
  /// Nothing is tried again.
  void give_up();

  /// Returns the latest `owed_until` of all claims so far.
  TimePoint owed_until() const noexcept { return owed_until_; }

 private:
  struct Waiter;
  enum class Mode { patient, hurried, over };

  /// Ends early when the mode changes.
  asio::awaitable<void> pause_until(TimePoint when);
  void change_to(Mode mode);
  asio::awaitable<void> run(ClaimPtr claim, ReleaseFsm::Limits limits,
                            std::shared_ptr<Waiter> waiter);

  Env& env_;
  Backend& backend_;
  TaskGroup& tasks_;
  Mode mode_ = Mode::patient;
  std::list<Signal*> pauses_;
  TimePoint owed_until_ = TimePoint::min();
  std::shared_ptr<TimePoint> answered_at_;
};

}  // namespace dlock::core
