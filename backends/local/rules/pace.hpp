// SPDX-License-Identifier: Apache-2.0
//
// How often a waiter looks who is not told by inotify: a user's programs share 128 instances, so
// of hundreds that wait for one lock most are not. Pure.
#pragma once

#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::local {

/// Until it looks again; `ahead`: how many tickets before its own may still have to be served. Each
/// before it that is not told either takes as long as its own look, half the shortest pause on
/// average, so that whoever is far behind does not come late.
Duration pause_untold(std::uint64_t ahead) noexcept;

}  // namespace dlock::local
