// SPDX-License-Identifier: Apache-2.0
#include "dlock/clock.hpp"

#include <ctime>

namespace dlock::inline v0 {

TimePoint BoottimeClock::now() noexcept {
  timespec ts{};
  ::clock_gettime(CLOCK_BOOTTIME, &ts);
  return TimePoint(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

}  // namespace dlock::inline v0
