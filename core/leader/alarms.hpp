// SPDX-License-Identifier: Apache-2.0
//
// Alarms: moments at which something short is to be done, for all leaders and scheduled runs of a
// process on one thread, which is there while there are any.
#pragma once

#include <cstdint>
#include <functional>

#include "dlock/clock.hpp"

namespace dlock::core {

using AlarmId = std::uint64_t;

/// `ring` is called at `when` or soon after, once; it must not block. After a suspend it may come
/// late by as long as that lasted: who must not act too late asks the clock itself. Throws
/// std::system_error if there is no thread for it.
AlarmId set_alarm(TimePoint when, std::function<void()> ring);
/// It does not begin to ring after this call; it may ring just then.
void clear_alarm(AlarmId id) noexcept;

}  // namespace dlock::core
