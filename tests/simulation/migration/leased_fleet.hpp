// SPDX-License-Identifier: Apache-2.0
//
// A fleet that a plan with a leased gate moves: programs with the route beside programs that know
// one store alone, while commands turn the gate in both directions. All of them are paused, killed
// and cut off, and the source forgets.
#pragma once

#include <cstdint>

#include "tests/simulation/migration/fleet_run.hpp"

namespace dlock::simulation::migration {

struct LeasedResult : RunResult {
  std::uint64_t grants_of_source = 0;  ///< with the source's token
  std::uint64_t grants_of_target = 0;
  std::uint64_t grants_of_legacy = 0;
  std::uint64_t grants_of_target_only = 0;
  std::uint64_t in_both = 0;  ///< holds that were seen in both stores
  std::uint64_t moved = 0;    ///< holds that were seen in one store alone, and then in the other
  std::uint64_t turns = 0;
  std::uint64_t turns_in_calm = 0;  ///< while nothing went wrong
  std::uint64_t wipes = 0;
  std::uint64_t cuts = 0;
  std::uint64_t losses = 0;  ///< of the gate
};

/// One run. Everything follows from the seed.
LeasedResult run_leased_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
