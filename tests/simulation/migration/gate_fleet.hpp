// SPDX-License-Identifier: Apache-2.0
//
// Fleets whose plans govern patterns: locks of every age, made at any moment, go from one simulated
// store to the other and back, by one plan or two at once, withdrawn and started again, finished,
// and taken back by a plan of its own, while programs and commands are paused, killed and cut off,
// and others try to start plans that must be refused.
#pragma once

#include <cstdint>
#include <string>

#include "testkit/checkers/history.hpp"

namespace dlock::simulation::migration {

struct GateResult {
  checkers::Violations violations;
  std::uint64_t grants_in_source = 0;
  std::uint64_t grants_in_target = 0;
  std::uint64_t grants_of_target_only = 0;
  std::uint64_t grants_of_source_only = 0;
  std::uint64_t names = 0;  ///< of locks that somebody held
  std::uint64_t turns = 0;  ///< changes of gates
  std::uint64_t sealed_at_once = 0;
  std::uint64_t withdrawals = 0;
  std::uint64_t refused_starts = 0;
  std::uint64_t crashes = 0;
  std::uint64_t returns = 0;  ///< plans that took all back after the first had come to its end
  std::uint64_t travels = 0;  ///< ... and others that took all to a third store, and home
  std::string trace;
};

/// One run; everything follows from the seed.
GateResult run_gate_fleet(std::uint64_t seed, bool tracing = false);

}  // namespace dlock::simulation::migration
