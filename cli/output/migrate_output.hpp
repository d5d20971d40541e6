// SPDX-License-Identifier: Apache-2.0
//
// What `migrate` prints, for scripts and for people. The JSON is a contract; a test pins it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "migration/move/coordinator.hpp"
#include "migration/move/plan_coordinator.hpp"
#include "migration/move/survey.hpp"

namespace dlock::cli {

/// The word for it, in JSON.
const char* outcome_of(core::migration::Verdict verdict);

/// Of `plan` and `start`.
struct PlanOutput {
  core::migration::Plan plan;
  std::vector<std::string> names;  ///< of its patterns, that the source shows now
  std::vector<core::migration::Stranger> strangers;
  std::vector<std::string> objections;
  bool started = false;
};
std::string to_json(const PlanOutput& output);
std::string to_text(const PlanOutput& output);

/// Of `status`. `wall_clock_ms`: now, for ages.
std::string to_json(const core::migration::PlanStatus& status, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::PlanStatus& status, std::int64_t wall_clock_ms);

/// Of `advance`, `rollback` and `finish`.
struct StepsOutput {
  core::migration::Plan plan;
  std::optional<core::migration::Gate> gate;  ///< as it stands afterwards
  std::vector<core::migration::Stranger> strangers;
  std::vector<core::migration::StepReport> steps;
  bool finished = false;
  bool withdrawn = false;
};
std::string to_json(const StepsOutput& output);
std::string to_text(const StepsOutput& output);

}  // namespace dlock::cli
