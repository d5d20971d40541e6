// SPDX-License-Identifier: Apache-2.0
//
// Whether a run is due: pure. All times are the store's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "dlock/lock_status.hpp"
#include "dlock/schedule.hpp"

namespace dlock::core {

/// Returns options.early, or its default.
std::chrono::milliseconds early_of(const ScheduleOptions& options) noexcept;

/// Returns the last tick that is at most early_of(options) after `now`. Needs options.every.
std::int64_t tick_of(std::chrono::milliseconds now, const ScheduleOptions& options) noexcept;

/// none: it may run. `last`: the record in the store; its own durations count, not those of
/// `options`.
RunRefusal::Reason refusal(const std::optional<RunRecord>& last, std::chrono::milliseconds now,
                           const ScheduleOptions& options) noexcept;

RunRecord begun(const ScheduleOptions& options, std::chrono::milliseconds now, Owner owner);

}  // namespace dlock::core
