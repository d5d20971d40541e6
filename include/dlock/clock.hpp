// SPDX-License-Identifier: Apache-2.0
//
// The clock of every lease: CLOCK_BOOTTIME, which counts the time while the machine is suspended.
// With a clock that stops then (CLOCK_MONOTONIC), a lock held through a suspend would seem valid
// too long.
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

/// A time that is never reached: "no deadline".
inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace dlock::inline v0
