// SPDX-License-Identifier: Apache-2.0
//
// What an operator may ask for.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migration/leased/leased_gate.hpp"
#include "migration/move/steps.hpp"

namespace dlock::core::migration {

/// How long a command waits, for holders or for readings of a gate, by default.
inline constexpr std::chrono::milliseconds kDefaultWait{30'000};

struct PlanRequest {
  /// The longest lease in the target; empty: what the store gives.
  std::optional<std::chrono::milliseconds> max_lease;
  /// With a leased gate: how long a reading counts; empty: kDefaultGateLease.
  std::optional<std::chrono::milliseconds> gate_lease;
};

struct StartRequest {
  PlanRequest plan;
  /// Of mode move: also with programs that lock in the source without the plan's route.
  bool with_strangers = false;
  /// With a leased gate: restores a lost one, in `source` or in `target`.
  std::optional<LeasedState> at;
  std::chrono::milliseconds wait = kDefaultWait;  ///< with `at`
};

struct StepRequest {
  Goal goal = Goal::advance;
  // Which locks; with a leased gate a step is of the whole plan.
  bool all = false;
  std::vector<std::string> names;
  /// 0 looks once; kWaitForever.
  std::chrono::milliseconds wait = kDefaultWait;
  /// Of rollback in mode move: the target is dead for good, and was stopped by the operator.
  bool target_gone = false;
  /// Of rollback: the plan is over when all is back.
  bool withdraw = false;
  /// Of finish in mode move: programs without the plan's route were stopped, or will be.
  bool strangers_gone = false;
  /// With a leased gate: no program is left that locks without the plan's route.
  bool legacy_gone = false;
};

}  // namespace dlock::core::migration
