// SPDX-License-Identifier: Apache-2.0
//
// What `dlock run` does to its command when the lock is going. Pure: (state, time left, now) ->
// action, and when to ask again.
//
// The promise: the command is told while the lock is still ours, and does not outlive the local
// deadline. So SIGTERM comes a margin before it (a tenth of the lease, at least 1 s, at most half
// of the lease; more if --kill-after asks for more), SIGKILL after --kill-after and at the latest
// just before the deadline. A lock that goes without a warning (evicted, session ended, we were
// stopped) has SIGTERM at once, and SIGKILL by the same rule.
#pragma once

#include <chrono>
#include <optional>

#include "cli/arguments.hpp"
#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::cli {

class LossPolicy {
 public:
  enum class Action { none, warn_suspect, warn_lost, terminate, kill };
  struct Step {
    Action action = Action::none;
    std::optional<Duration> ask_again_in;  ///< empty: when something changes
  };

  LossPolicy(OnLost on_lost, std::optional<std::chrono::milliseconds> kill_after)
      : on_lost_(on_lost), kill_after_(kill_after) {}

  /// `remaining`: to the local deadline; empty without a lease. Each action is asked for once.
  Step step(HandleState state, std::optional<Duration> remaining, TimePoint now);

  /// How long before the local deadline the command has its SIGTERM.
  Duration margin() const;

  /// The command was told to end, or ran on without the lock: its own status does not count.
  bool was_lost() const noexcept { return lost_ || terminated_at_.has_value(); }

 private:
  TimePoint kill_at() const;
  Step warn_only(HandleState state);

  const OnLost on_lost_;
  const std::optional<std::chrono::milliseconds> kill_after_;
  Duration lease_{0};  ///< the longest time left that was seen
  std::optional<TimePoint> deadline_;
  std::optional<TimePoint> terminated_at_;
  bool suspected_ = false;
  bool lost_ = false;
  bool killed_ = false;
};

}  // namespace dlock::cli
