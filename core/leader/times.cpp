// SPDX-License-Identifier: Apache-2.0
#include "core/leader/times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/duration.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{2000};

milliseconds default_retry(std::optional<milliseconds> lease) {
  return lease ? std::clamp(*lease / 8, milliseconds(1), kRetry) : kRetry;
}

std::string refused_deadline(milliseconds deadline, milliseconds lease) {
  if (deadline <= lease / 3) {
    return fmt::format(
        "renew_deadline {}: it must be more than a third of the lease, so that a renewal can be "
        "repeated; write more than {}",
        format_duration(deadline), format_duration(lease / 3));
  }
  if (deadline > lease * 9 / 10) {
    return fmt::format(
        "renew_deadline {}: the work has what is left of the lease to stop, and that must be a "
        "tenth of it at least; write {} or less, or a longer lease",
        format_duration(deadline), format_duration(lease * 9 / 10));
  }
  return {};
}

}  // namespace

Duration time_to_stop(const LeaderTimes& times, Duration full) noexcept {
  const Duration most = full / 10 * 9;
  const Duration deadline =
      times.renew_deadline ? std::min<Duration>(*times.renew_deadline, most) : full / 3 * 2;
  return full - deadline;
}

Duration pause_before(const LeaderTimes& times, std::optional<Duration> lease,
                      std::uint64_t random) noexcept {
  std::optional<milliseconds> known = times.lease;
  if (!known && lease) known = std::chrono::duration_cast<milliseconds>(*lease);
  const Duration pause = times.retry.value_or(default_retry(known));
  return pause + pause / 2 * static_cast<std::int64_t>(random % 1000) / 1000;
}

bool may_pass(const error_code& error) noexcept {
  return error == errc::unavailable || error == errc::timed_out || error == errc::lock_lost;
}

}  // namespace dlock::core

namespace dlock::inline v0 {

using std::chrono::milliseconds;

std::string refused(const LeaderTimes& times) {
  for (const auto& each : {times.lease, times.renew_deadline, times.retry}) {
    if (each && each->count() < 1) return "lease, renew_deadline and retry are 1ms or more each";
  }
  if (times.renew_deadline && !times.lease) {
    return "renew_deadline has to fit the lease; give the lease, too";
  }
  if (!times.lease) return {};
  const auto deadline = times.renew_deadline.value_or(*times.lease * 2 / 3);
  if (auto wrong = core::refused_deadline(deadline, *times.lease); !wrong.empty()) return wrong;
  if (times.retry && *times.retry * 6 / 5 >= deadline) {
    return fmt::format(
        "retry {}: a process that has lost the lead would try again later than others give up; "
        "write less than {} (five sixths of the renew_deadline)",
        format_duration(*times.retry), format_duration(deadline * 5 / 6));
  }
  return {};
}

const char* to_string(LeaderEvent::Kind value) noexcept {
  switch (value) {
    case LeaderEvent::Kind::elected:
      return "elected";
    case LeaderEvent::Kind::resigned:
      return "resigned";
    case LeaderEvent::Kind::lost:
      return "lost";
    case LeaderEvent::Kind::work_failed:
      return "work_failed";
    case LeaderEvent::Kind::retrying:
      return "retrying";
    case LeaderEvent::Kind::gave_up:
      return "gave_up";
  }
  return "unknown";
}

}  // namespace dlock::inline v0
