// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a run, by what the recorder saw and what is left in the store.
#pragma once

#include "tests/simulation/recorder.hpp"
#include "tests/simulation/run.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

/// What one store's part in a run was.
struct Scene {
  const Recorder& recorder;
  const SimStore& store;
  /// Of its locks.
  const checkers::History history;
  std::string prefix;
  /// Long after all was whole again.
  TimePoint calm;
  TimePoint end;
  /// The store was struck by something that its promise does not cover.
  bool broken;
  /// So much that its tokens may go back.
  bool tokens_fall;
  /// A claim may serve several holders of its program in turn, with one token.
  bool cached;
  /// Of the semaphores that the programs use; 0: they use locks.
  std::uint64_t permits = 0;
};

/// Of the locks whose names begin so.
checkers::History history_of(const checkers::History& all, const std::string& prefix);

/// Adds to `result.violations` and counts `result.doubles`.
void judge(const Scene& scene, RunResult& result);
/// What does not depend on a store: how late losses were told, and what the recorder found itself.
/// The last one.
void judge_telling(const Recorder& recorder, TimePoint end, RunResult& result);

}  // namespace dlock::simulation
