// SPDX-License-Identifier: Apache-2.0
//
// The clock of every lease: CLOCK_BOOTTIME, which goes on while the machine is suspended. A lock
// held through a suspend on a clock that stops (CLOCK_MONOTONIC) would be believed too long.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>

namespace dlock::inline v0 {

/// A steady clock that counts suspend. Not comparable between machines or boots.
struct BoottimeClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BoottimeClock>;
  static constexpr bool is_steady = true;

  /// The present moment. Any thread.
  static time_point now() noexcept;
};

using TimePoint = BoottimeClock::time_point;
using Duration = BoottimeClock::duration;

/// A moment that never comes: "no deadline".
inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace dlock::inline v0
