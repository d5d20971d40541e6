// SPDX-License-Identifier: Apache-2.0
//
// A fleet that a plan in mode dual moves: programs of phases 0, 1 and 2, restarted one after the
// other into the next phase, beside programs that know of no plan, while commands move the window
// there and back, and all of them are paused, killed and cut off. In some runs a second plan of the
// same locks is started again and again.
#pragma once

#include <cstdint>

#include "tests/simulation/migration/fleet_run.hpp"

namespace dlock::simulation::migration {

struct DualResult : RunResult {
  std::uint64_t grants_of_phase[3] = {};
  std::uint64_t grants_of_legacy = 0;
  std::uint64_t grants_of_target_only = 0;
  std::uint64_t windows = 0;  ///< changes
  std::uint64_t restarts = 0;
  std::uint64_t wipes = 0;
  std::uint64_t cuts = 0;
  std::uint64_t losses = 0;          ///< of the window
  std::uint64_t rivals = 0;          ///< a second plan was in effect for a while
  std::uint64_t refused_starts = 0;  ///< of a second plan
};

/// One run; everything follows from the seed.
DualResult run_dual_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
