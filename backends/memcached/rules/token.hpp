// SPDX-License-Identifier: Apache-2.0
//
// Fencing tokens from a counter that a cache may lose at any time. Pure.
//
// The counter starts at the wall clock's microseconds and is counted up by one per grant. A lock is
// not granted a million times a second, so the clock stays ahead of the counter. So a lost counter
// starts again above all earlier tokens: `time_seeded`. That holds while no client's clock is
// behind by more than the lock was idle.
#pragma once

#include <cstdint>
#include <ctime>

#include "dlock/sequencer.hpp"

namespace dlock::memcached {

/// A clock that is far ahead must not use up the tokens: half of them are left above this seed. It
/// is the year 2112 in microseconds; a correct clock is below it.
inline constexpr std::uint64_t kHighestSeed = kTokenEnd / 2;
/// How long a counter is kept: the keys of unused names expire. The longest exptime that is not a
/// date.
inline constexpr std::time_t kTokenExptime = 2'592'000;

/// Returns when a counter with this value may expire: never while it is ahead of the clock, which
/// would seed it too low.
std::time_t token_exptime(std::uint64_t value, std::int64_t wall_clock_us);

/// The first value of a counter.
std::uint64_t token_seed(std::int64_t wall_clock_us, std::uint64_t min_token);
/// Returns by how much a counter at `token` must be raised for a token above `min_token`.
std::uint64_t token_raise(std::uint64_t token, std::uint64_t min_token);

}  // namespace dlock::memcached
