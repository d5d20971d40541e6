// SPDX-License-Identifier: Apache-2.0
//
// Alarms: moments at which something short is to be done, for all leaders and scheduled runs of a
// process on one thread, which is there while there are any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "dlock/clock.hpp"

namespace dlock::core {

using AlarmId = std::uint64_t;

/// Returns the time of its next call; empty: none. Must not block, nor throw.
using Ring = std::function<std::optional<TimePoint>()>;

/// Calls `ring` at `when` or soon after. A suspend may delay the call by its length: code that must
/// not act too late reads the clock. Throws std::system_error if no thread can be made for it.
AlarmId set_alarm(TimePoint when, Ring ring);
/// It does not begin to ring after this call; it may ring just then. 0 is none.
void clear_alarm(AlarmId id) noexcept;

}  // namespace dlock::core
