// SPDX-License-Identifier: Apache-2.0
//
// A fleet that is moved from one simulated store to another and back, and there again for good, or
// until a plan of its own takes it back,
// while its programs and the operators' commands are paused, killed and cut off.
#pragma once

#include <cstdint>

#include "tests/simulation/migration/move_run.hpp"

namespace dlock::simulation::migration {

struct FleetResult : MoveResult {
  std::uint64_t flips = 0;  ///< records that were made or taken away
};

/// One run; everything follows from the seed.
FleetResult run_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
