// SPDX-License-Identifier: Apache-2.0
//
// A fleet that is moved from one simulated store to another and back, and there again for good, or
// until a plan of its own takes it back,
// while its programs and the operators' commands are paused, killed and cut off.
#pragma once

#include <cstdint>
#include <string>

#include "testkit/checkers/history.hpp"

namespace dlock::simulation::migration {

struct FleetResult {
  checkers::Violations violations;
  std::uint64_t grants_in_source = 0;
  std::uint64_t grants_in_target = 0;
  std::uint64_t grants_of_target_only = 0;
  std::uint64_t flips = 0;  ///< records that were made or taken away
  std::uint64_t crashes = 0;
  std::uint64_t returns =
      0;  ///< plans that took the locks back after the first had come to its end
  bool lossy = false;
  bool finished = false;
  std::string trace;
};

/// One run; everything follows from the seed.
FleetResult run_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
