// SPDX-License-Identifier: Apache-2.0
//
// What an operator may ask for.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migration/move/steps.hpp"

namespace dlock::core::migration {

/// For how long holders are waited for, in mode dual programs, if nobody says otherwise.
inline constexpr std::chrono::milliseconds kDefaultWait{30'000};

struct PlanRequest {
  /// Of mode dual: locks that a store cannot list, by their exact names. Mode move governs all that
  /// its routes match.
  std::vector<std::string> names;
  /// The longest lease in the target, in mode dual in both; empty: what the store gives.
  std::optional<std::chrono::milliseconds> max_lease;
  /// Of mode dual: how long a program counts that has died; empty: kDefaultRegistration.
  std::optional<std::chrono::milliseconds> registration;
};

struct StartRequest {
  PlanRequest plan;
  /// Of mode move: also with programs that lock in the source without the plan's route.
  bool with_strangers = false;
  /// Of mode dual: restores a window that was lost, with these phases.
  std::optional<std::pair<int, int>> at;
  std::chrono::milliseconds wait = kDefaultWait;  ///< with `at`
};

struct StepRequest {
  Goal goal = Goal::advance;
  // Of mode move: which locks; in mode dual a step is of the whole plan.
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
  /// Of mode dual: no program is left that locks without the plan's route.
  bool legacy_gone = false;
};

}  // namespace dlock::core::migration
