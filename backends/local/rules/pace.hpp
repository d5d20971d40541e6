// SPDX-License-Identifier: Apache-2.0
//
// The interval at which a waiter without inotify polls. A user's programs share 128 inotify
// instances, so most of hundreds of waiters for one lock have none. Pure.
#pragma once

#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::local {

/// Returns the pause until the next poll; `ahead`: tickets before its own that may still have to be
/// served. Each waiter before it without inotify needs half the shortest pause on average to poll.
/// So a waiter far behind does not poll late.
Duration pause_untold(std::uint64_t ahead) noexcept;

}  // namespace dlock::local
