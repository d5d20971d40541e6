// SPDX-License-Identifier: Apache-2.0
//
// The decisions of a leader by the clock: pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "dlock/clock.hpp"
#include "dlock/error.hpp"
#include "dlock/leader.hpp"

namespace dlock::core {

/// Returns the rest of the lease at which a leader gives up. `full`: the rest when it was granted.
Duration time_to_stop(const LeaderTimes& times, Duration full) noexcept;

/// Returns the pause before the next try. `lease`: if it is known. `random`: any number.
Duration pause_before(const LeaderTimes& times, std::optional<Duration> lease,
                      std::uint64_t random) noexcept;

/// Whether another try may help.
bool may_pass(const error_code& error) noexcept;

}  // namespace dlock::core
