// SPDX-License-Identifier: Apache-2.0
//
// What an operator is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/dual/dual_report.hpp"
#include "migration/gate.hpp"
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

/// Of `plan` in mode dual.
struct DualPlanReport {
  Plan plan;
  std::vector<std::string> objections;
  std::vector<std::string> remarks;  ///< what an operator should know, and can live with
};

/// Of `start` and of steps in mode dual.
struct DualStepReport {
  Plan plan;
  DualReport report;
  bool finished = false;
  bool withdrawn = false;
};

}  // namespace dlock::core::migration
