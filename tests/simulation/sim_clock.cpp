// SPDX-License-Identifier: Apache-2.0
//
// Stands for core/loop/clock.cpp in the simulation's copy of the core.
#include "tests/simulation/sim_clock.hpp"

#include <ctime>

#include "dlock/clock.hpp"

namespace dlock::inline v0 {

TimePoint BoottimeClock::now() noexcept {
  if (const auto* const process = simulation::running_process) return process->now();
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace dlock::inline v0
