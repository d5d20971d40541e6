// SPDX-License-Identifier: Apache-2.0
//
// The output of `migrate` for a plan with a leased gate, for scripts and for people. The JSON is a
// contract; a test pins it.
#pragma once

#include <cstdint>
#include <string>

#include "migration/admin.hpp"

namespace dlock::cli {

/// Of `plan`.
std::string to_json(const core::migration::LeasedPlanReport& report);
std::string to_text(const core::migration::LeasedPlanReport& report);

/// Of `status`. `wall_clock_ms`: now, for ages.
std::string to_json(const core::migration::LeasedStatus& status, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::LeasedStatus& status, std::int64_t wall_clock_ms);

/// Of `start`, `advance`, `rollback` and `finish`.
std::string to_json(const core::migration::LeasedStepReport& step, std::int64_t wall_clock_ms);
std::string to_text(const core::migration::LeasedStepReport& step);

}  // namespace dlock::cli
