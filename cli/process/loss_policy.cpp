// SPDX-License-Identifier: Apache-2.0
#include "cli/process/loss_policy.hpp"

#include <algorithm>

namespace dlock::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kDefaultKillAfter{5'000};

}  // namespace

Duration LossPolicy::margin() const {
  const auto wanted =
      std::max<Duration>({lease_ / 10, Duration(1s), Duration(kill_after_.value_or(0ms))});
  return std::min<Duration>(wanted, lease_ / 2);
}

TimePoint LossPolicy::kill_at() const {
  const TimePoint patience = *terminated_at_ + kill_after_.value_or(kDefaultKillAfter);
  if (!deadline_) return patience;
  // A killed process is gone a moment later than the signal is sent.
  const Duration headroom = std::clamp<Duration>(margin() / 10, 10ms, 500ms);
  return std::min(patience, *deadline_ - headroom);
}

LossPolicy::Step LossPolicy::warn_only(HandleState state) {
  if (state == HandleState::lost) {
    if (std::exchange(lost_, true)) return {};
    return {Action::warn_lost, {}};
  }
  const bool suspect = state == HandleState::suspect;
  if (suspect && !std::exchange(suspected_, true)) return {Action::warn_suspect, {}};
  if (!suspect) suspected_ = false;
  return {};
}

LossPolicy::Step LossPolicy::step(HandleState state, std::optional<Duration> remaining,
                                  TimePoint now) {
  if (on_lost_ == OnLost::warn) return warn_only(state);
  if (state == HandleState::lost) {
    lost_ = true;
  } else if (remaining) {
    lease_ = std::max(lease_, *remaining);
    deadline_ = now + *remaining;
  }

  if (!terminated_at_) {
    if (!lost_ && !deadline_) return {};
    // A timer and a signal may be late, the margin is a promise.
    const Duration delivery = std::clamp<Duration>(margin() / 20, 10ms, 100ms);
    const TimePoint terminate_at = lost_ ? now : *deadline_ - margin() - delivery;
    if (now < terminate_at) return {Action::none, terminate_at - now};
    terminated_at_ = now;
    return {Action::terminate, Duration(0)};
  }
  if (killed_) return {};
  if (now < kill_at()) return {Action::none, kill_at() - now};
  killed_ = true;
  return {Action::kill, {}};
}

}  // namespace dlock::cli
