// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a run, by what the recorder saw and what is left in the store.
#pragma once

#include "tests/simulation/recorder.hpp"
#include "tests/simulation/run.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

struct Scene {
  const Recorder& recorder;
  const SimStore& store;
  /// Long after all was whole again.
  TimePoint calm;
  TimePoint end;
  /// The store was struck by something that its promise does not cover.
  bool broken;
  /// So much that its tokens may go back.
  bool tokens_fall;
  /// Of the semaphores that the programs use; 0: they use locks.
  std::uint64_t permits = 0;
};

/// Adds to `result.violations` and counts `result.doubles`.
void judge(const Scene& scene, RunResult& result);

}  // namespace dlock::simulation
