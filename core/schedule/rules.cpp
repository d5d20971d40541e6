// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dlock/duration.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using Outcome = RunRecord::Outcome;
using Reason = RunRefusal::Reason;

/// The run was not done, and its process may not know that yet.
bool is_open(const RunRecord& run) {
  return run.outcome == Outcome::running || run.outcome == Outcome::lost;
}

bool has_failed(const RunRecord& run) {
  return run.outcome == Outcome::failed || run.outcome == Outcome::overran;
}

}  // namespace

milliseconds early_of(const ScheduleOptions& options) noexcept {
  constexpr milliseconds kMost = std::chrono::seconds(30);
  if (options.early) return *options.early;
  return options.every ? std::min(*options.every / 10, kMost) : milliseconds(0);
}

std::int64_t tick_of(milliseconds now, const ScheduleOptions& options) noexcept {
  const auto shifted = now - options.offset + early_of(options);
  const auto tick = shifted / *options.every;
  return (shifted % *options.every).count() < 0 ? tick - 1 : tick;
}

Reason refusal(const std::optional<RunRecord>& last, milliseconds now,
               const ScheduleOptions& options) noexcept {
  if (!last) return Reason::none;
  if (is_open(*last)) return now < last->at_most_until ? Reason::running : Reason::none;
  if (options.again) return Reason::none;
  // A tick before the last one counts as run, too: the store's clock was set back.
  const bool has_ticks = options.every && last->tick && last->every == *options.every &&
                         last->offset == options.offset;
  const bool is_repeat = options.retry_failed && has_failed(*last);
  if (has_ticks && !is_repeat && tick_of(now, options) <= *last->tick) return Reason::was_run;
  return now < last->at_least_until ? Reason::too_early : Reason::none;
}

RunRecord begun(const ScheduleOptions& options, milliseconds now, Owner owner) {
  RunRecord run;
  run.started = now;
  run.at_most_until = now + options.at_most_for;
  run.at_least_until = now + options.at_least_for;
  run.owner = std::move(owner);
  if (options.every && !options.again) {
    run.tick = tick_of(now, options);
    run.every = *options.every;
    run.offset = options.offset;
    run.early = early_of(options);
  }
  return run;
}

}  // namespace dlock::core

namespace dlock::inline v0 {

using std::chrono::milliseconds;

std::string refused(const ScheduleOptions& options) {
  constexpr milliseconds kLongest = std::chrono::hours(24 * 366);
  const auto& most = options.at_most_for;
  const auto& least = options.at_least_for;
  if (most.count() < 1 || most > kLongest) {
    return "at-most-for: write how long a run may take, 1ms to 366 days; one that has died is "
           "followed by another after that";
  }
  if (least.count() < 0 || least > most) {
    return fmt::format("at-least-for {}: it is above at-most-for, {}; write {} or less",
                       format_duration(least), format_duration(most), format_duration(most));
  }
  if (options.again && options.retry_failed) {
    return "again: it repeats a failed run, too; remove retry-failed";
  }
  if (!options.every) {
    if (options.early) return "early: it is a time before a tick; add every";
    if (options.retry_failed) return "retry-failed: it repeats the run of a tick; add every";
    return options.offset.count() == 0 ? std::string()
                                       : "offset: it is a place between ticks; add every";
  }
  const auto& every = *options.every;
  if (every.count() < 2 || every > kLongest) return "every: write 2ms to 366 days";
  if (least > every) {
    return fmt::format(
        "at-least-for {}: it is above the period, {}, so that ticks would be left out; write less",
        format_duration(least), format_duration(every));
  }
  if (options.offset.count() < 0 || options.offset >= every) {
    return fmt::format("offset {}: it must be below the period, {}",
                       format_duration(options.offset), format_duration(every));
  }
  if (options.early && (options.early->count() < 0 || *options.early >= every)) {
    return fmt::format("early {}: it must be below the period, {}", format_duration(*options.early),
                       format_duration(every));
  }
  return {};
}

milliseconds RunRecord::next_possible() const noexcept {
  if (outcome == Outcome::running || outcome == Outcome::lost) return at_most_until;
  if (!tick || every.count() == 0) return at_least_until;
  const auto next = offset + every * (*tick + 1) - early;
  return std::max(next, at_least_until);
}

const char* to_string(RunRecord::Outcome value) noexcept {
  switch (value) {
    case RunRecord::Outcome::running:
      return "running";
    case RunRecord::Outcome::succeeded:
      return "succeeded";
    case RunRecord::Outcome::failed:
      return "failed";
    case RunRecord::Outcome::overran:
      return "overran";
    case RunRecord::Outcome::lost:
      return "lost";
  }
  return "unknown";
}

const char* to_string(RunRefusal::Reason value) noexcept {
  switch (value) {
    case RunRefusal::Reason::none:
      return "none";
    case RunRefusal::Reason::was_run:
      return "was_run";
    case RunRefusal::Reason::running:
      return "running";
    case RunRefusal::Reason::too_early:
      return "too_early";
    case RunRefusal::Reason::busy:
      return "busy";
  }
  return "unknown";
}

}  // namespace dlock::inline v0
