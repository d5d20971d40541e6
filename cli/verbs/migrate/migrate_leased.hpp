// SPDX-License-Identifier: Apache-2.0
//
// The `migrate` verbs of a plan with a leased gate.
#pragma once

#include "cli/arguments.hpp"
#include "cli/verbs/migrate/migrate_session.hpp"

namespace dlock::cli {

/// The exit status. Throws core::migration::Refusal and Misuse, Interrupted, LockError.
int migrate_leased(MigrateSession& session, const Arguments& arguments);

}  // namespace dlock::cli
