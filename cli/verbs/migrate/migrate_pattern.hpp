// SPDX-License-Identifier: Apache-2.0
//
// The steps of a plan in mode move that governs its route's patterns.
#pragma once

#include <vector>

#include "cli/arguments.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/migrate/migrate_session.hpp"
#include "migration/ledger.hpp"
#include "migration/move/steps.hpp"
#include "migration/step_report.hpp"

namespace dlock::cli {

/// advance, rollback and finish. The exit status.
int pattern_step(MigrateSession& session, const Arguments& arguments,
                 const core::migration::Ledger::Found& found, core::migration::Goal goal);

/// Until when holders are waited for.
TimePoint deadline_of(const Arguments& arguments, Env& env);
Exit worst(const std::vector<core::migration::StepReport>& steps);

}  // namespace dlock::cli
