// SPDX-License-Identifier: Apache-2.0
//
// What a leader decides by the clock: pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "dlock/clock.hpp"
#include "dlock/error.hpp"
#include "dlock/leader.hpp"

namespace dlock::core {

/// How much of the lease is left when a leader gives up. `full`: what was left when it was granted.
Duration time_to_stop(const LeaderTimes& times, Duration full) noexcept;

/// Before standing again. `lease`: if it is known. `random`: any number.
Duration pause_before(const LeaderTimes& times, std::optional<Duration> lease,
                      std::uint64_t random) noexcept;

/// Whether standing again may help.
bool may_pass(const error_code& error) noexcept;

}  // namespace dlock::core
