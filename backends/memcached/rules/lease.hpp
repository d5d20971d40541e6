// SPDX-License-Identifier: Apache-2.0
//
// Converts a lease for a server that counts whole seconds. Pure.
//
// An item with exptime e lives longer than e - 1 seconds and no longer than e: the server's clock
// ticks once a second. So a lease is requested with one second more.
#pragma once

#include <chrono>
#include <ctime>

#include "dlock/clock.hpp"

namespace dlock::memcached {

/// For a shorter lease the one second that rounding may cost is too large a part.
inline constexpr std::chrono::milliseconds kShortestLease = std::chrono::seconds(3);
/// From 30 days and one second on, the server reads an exptime as a date (in 1970): `add` would
/// return STORED to every client.
inline constexpr std::chrono::milliseconds kLongestLease = std::chrono::seconds(2'591'999);
/// The smallest exptime that is a date: long past, so the item is gone at once. Unlike -1 it works
/// in every protocol, and it needs no clock.
inline constexpr std::time_t kPastExpiry = 2'592'001;

/// The exptime under which an item lives for the lease at least.
std::time_t exptime_of(std::chrono::milliseconds lease);

/// An answer slower than this does not count for a lease at first. The server may have been stopped
/// meanwhile and have used its old clock, so that the item expires early. If the request is
/// repeated, its answer counts.
inline constexpr std::chrono::milliseconds kTrustedAnswer{250};

}  // namespace dlock::memcached
