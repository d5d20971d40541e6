// SPDX-License-Identifier: Apache-2.0
//
// One simulated run: programs that compete for locks on one store while it, the network and they
// themselves are broken in every way the store's promise has to survive; then everything heals, the
// programs end, and the checkers judge what was seen.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "testkit/checkers/history.hpp"
#include "tests/simulation/sim_store.hpp"
#include "tests/simulation/tap.hpp"

namespace dlock::simulation {

/// How a store is set up, and what the programs do.
struct Way {
  /// Set up, and struck, such that it promises exclusion.
  bool exclusive = true;
  /// Some programs read only, and some that write read on.
  bool readers = false;
  /// They want permits instead of locks.
  bool permits = false;
  /// They export grants, and adopt others'.
  bool exports = false;
  /// They take several locks at once.
  bool several = false;
  /// Some of those in a second store; null: there is one store.
  const Kind* with = nullptr;
  /// Locks stay with a program that has given them back.
  bool cached = false;
};

struct RunOptions {
  std::uint64_t seed = 1;
  const Kind* kind = nullptr;
  Way way = {};
  bool tracing = false;
  std::string_view defect = {};
};

struct RunResult {
  checkers::Violations violations;
  std::uint64_t acquisitions = 0;
  std::uint64_t contended = 0;
  std::uint64_t adoptions = 0;
  Duration simulated{};
  FaultTable faults;
  /// Second grants while an earlier holder believed, by what made the store forget. Not against the
  /// promise; each earlier holder was told by its next answered renewal, or it is a violation.
  std::map<Fault, std::uint64_t> doubles;
  /// When losses were told, by how long after the local deadline; negative: before it.
  std::vector<Duration> lateness;
  std::string trace;
};

RunResult run(const RunOptions& options);

}  // namespace dlock::simulation
