// SPDX-License-Identifier: Apache-2.0
//
// Fleets whose plans govern patterns: locks of every age, made at any moment, go from one simulated
// store to the other and back, by one plan or two at once, withdrawn and started again, finished,
// and taken back by a plan of its own, while programs and commands are paused, killed and cut off,
// and others try to start plans that must be refused.
#pragma once

#include <cstdint>

#include "tests/simulation/migration/move_run.hpp"

namespace dlock::simulation::migration {

struct GateResult : MoveResult {
  std::uint64_t names = 0;  ///< of locks that somebody held
  std::uint64_t turns = 0;  ///< changes of gates
  std::uint64_t sealed_at_once = 0;
  std::uint64_t withdrawals = 0;
  std::uint64_t refused_starts = 0;
  std::uint64_t travels = 0;  ///< returns that took all to a third store, and home
};

/// One run; everything follows from the seed.
GateResult run_gate_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
