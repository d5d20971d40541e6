// SPDX-License-Identifier: Apache-2.0
//
// What `migrate` prints of a plan in mode dual, for scripts and for people. The JSON is a contract;
// a test pins it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "migration/dual/dual_coordinator.hpp"
#include "migration/dual/dual_survey.hpp"

namespace dlock::cli {

/// Of `plan`.
struct DualPlanOutput {
  core::migration::Plan plan;
  std::vector<std::string> objections;
  std::vector<std::string> remarks;  ///< what an operator should know, and can live with
};
std::string to_json(const DualPlanOutput& output);
std::string to_text(const DualPlanOutput& output);

/// Of `status`. `wall_clock_ms`: now, for ages.
std::string to_json(const core::migration::DualStatus& status, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::DualStatus& status, std::int64_t wall_clock_ms);

/// Of `start`, `advance`, `rollback` and `finish`.
struct DualStepOutput {
  core::migration::Plan plan;
  core::migration::DualReport report;
  bool finished = false;
  bool withdrawn = false;
};
std::string to_json(const DualStepOutput& output, std::int64_t wall_clock_ms);
std::string to_text(const DualStepOutput& output);

/// What is to be written into which programs while the window is so: a sentence.
std::string line_to_write(const core::migration::Plan& plan, const core::migration::Window& window);

}  // namespace dlock::cli
