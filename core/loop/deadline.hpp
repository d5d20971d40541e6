// SPDX-License-Identifier: Apache-2.0
//
// Converts the wait of a user into a deadline.
#pragma once

#include <chrono>

#include "dlock/clock.hpp"

namespace dlock::core {

/// A wait so long that the clock would overflow is one for ever.
inline TimePoint deadline_after(TimePoint now, std::chrono::milliseconds wait) {
  using std::chrono::milliseconds;
  if (wait > std::chrono::hours(24 * 365 * 10)) return kNever;
  return now + (wait > milliseconds(0) ? wait : milliseconds(0));
}

}  // namespace dlock::core
