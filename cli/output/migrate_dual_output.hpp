// SPDX-License-Identifier: Apache-2.0
//
// What `migrate` prints of a plan in mode dual, for scripts and for people. The JSON is a contract;
// a test pins it.
#pragma once

#include <cstdint>
#include <string>

#include "migration/admin.hpp"

namespace dlock::cli {

/// Of `plan`.
std::string to_json(const core::migration::DualPlanReport& report);
std::string to_text(const core::migration::DualPlanReport& report);

/// Of `status`. `wall_clock_ms`: now, for ages.
std::string to_json(const core::migration::DualStatus& status, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::DualStatus& status, std::int64_t wall_clock_ms);

/// Of `start`, `advance`, `rollback` and `finish`.
std::string to_json(const core::migration::DualStepReport& step, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::DualStepReport& step);

/// What is to be written into which programs while the window is so: a sentence.
std::string line_to_write(const core::migration::Plan& plan, const core::migration::Window& window);

}  // namespace dlock::cli
