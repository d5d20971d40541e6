// SPDX-License-Identifier: Apache-2.0
//
// What an operator is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/gate.hpp"
#include "migration/leased/leased_report.hpp"
#include "migration/plan.hpp"
#include "migration/step_report.hpp"
#include "migration/stranger.hpp"

namespace dlock::core::migration {

/// Of `plan` and `start` in mode move.
struct PlanReport {
  Plan plan;
  std::vector<std::string> names;  ///< of its patterns, that the source shows now
  std::vector<Stranger> strangers;
  std::vector<std::string> objections;  ///< with one it cannot be started, or was not
  bool started = false;
};

/// Of steps in mode move.
struct StepsReport {
  Plan plan;
  std::optional<Gate> gate;  ///< as it stands afterwards
  std::vector<Stranger> strangers;
  std::vector<StepReport> steps;
  bool finished = false;
  bool withdrawn = false;
};

/// The one verdict on all of them: refused before unreachable before waiting before done.
Verdict verdict_on(const std::vector<StepReport>& steps);

/// Of `plan` with a leased gate.
struct LeasedPlanReport {
  Plan plan;
  std::vector<std::string> objections;
  std::vector<std::string> remarks;
};

/// Of `start` and of steps with a leased gate.
struct LeasedStepReport {
  Plan plan;
  LeasedReport report;
  bool finished = false;
  bool withdrawn = false;
};

}  // namespace dlock::core::migration
