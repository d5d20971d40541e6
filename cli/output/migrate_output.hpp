// SPDX-License-Identifier: Apache-2.0
//
// What `migrate` prints, for scripts and for people. The JSON is a contract; a test pins it.
#pragma once

#include <cstdint>
#include <string>

#include "migration/admin.hpp"

namespace dlock::cli {

/// The word for it, in JSON.
const char* outcome_of(core::migration::Verdict verdict);

/// Of `plan` and `start`.
std::string to_json(const core::migration::PlanReport& report);
std::string to_text(const core::migration::PlanReport& report);

/// Of `status`. `wall_clock_ms`: now, for ages.
std::string to_json(const core::migration::PlanStatus& status, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::PlanStatus& status, std::int64_t wall_clock_ms);

/// Of `advance`, `rollback` and `finish`.
std::string to_json(const core::migration::StepsReport& report);
std::string to_text(const core::migration::StepsReport& report);

}  // namespace dlock::cli
