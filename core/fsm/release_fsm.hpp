// SPDX-License-Identifier: Apache-2.0
//
// How a lock is given back, or a claim withdrawn, for certain. Pure: (state, event, now) -> step;
// releaser.* carries the steps out.
//
// A release that failed is tried again until it is done or the lease is over. When a request of
// the claim had an unknown outcome, a late copy of it may still reach the store after the release:
// so the store is searched again shortly after its first answer, and until none can arrive (at most
// one lease).
#pragma once

#include <optional>

#include "dlock/spi/answers.hpp"

namespace dlock::core {

class ReleaseFsm {
 public:
  struct Limits {
    Duration request_timeout{};
    TimePoint lease_over = kNever;               ///< the store frees it automatically then
    std::optional<TimePoint> late_copies_until;  ///< empty: no request is in doubt
    Duration search_pause{};                     ///< between searches for late copies
  };
  enum class Action { release, pause, finish };
  struct Step {
    Action what = Action::finish;
    bool search = false;       ///< for release
    TimePoint until = kNever;  ///< for release and pause
  };

  explicit ReleaseFsm(Limits limits) : limits_(limits), search_(limits.late_copies_until) {}

  Step begin(TimePoint now);
  Step on_answer(ReleaseStatus status, TimePoint now);
  Step on_pause_over(TimePoint now) { return begin(now); }

  /// Returns the result for a caller that waits for the release: set by the first definite answer.
  std::optional<ReleaseStatus> outcome() const noexcept { return outcome_; }

 private:
  Limits limits_;
  bool search_;
  int failures_ = 0;
  int refusals_ = 0;
  std::optional<ReleaseStatus> outcome_;
};

}  // namespace dlock::core
