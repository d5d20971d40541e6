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

/// Says when it is to be called again; empty: not any more. Must not block, nor throw.
using Ring = std::function<std::optional<TimePoint>()>;

/// `ring` is called at `when` or soon after. After a suspend it may come late by as long as that
/// lasted: who must not act too late asks the clock itself. Throws std::system_error if there is no
/// thread for it.
AlarmId set_alarm(TimePoint when, Ring ring);
/// It does not begin to ring after this call; it may ring just then. 0 is none.
void clear_alarm(AlarmId id) noexcept;

}  // namespace dlock::core
