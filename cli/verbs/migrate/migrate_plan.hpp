// SPDX-License-Identifier: Apache-2.0
//
// What every `migrate` verb of mode move asks first: the plan as the stores have it.
#pragma once

#include <functional>
#include <string>

#include "cli/verbs/migrate/migrate_session.hpp"
#include "migration/ledger.hpp"
#include "migration/move/steps.hpp"

namespace dlock::cli {

core::migration::Ledger::Found find_plan(MigrateSession& session, const std::string& plan,
                                         bool ask_target);

Failure with_ledger(MigrateSession& session,
                    std::function<asio::awaitable<Failure>(core::migration::Ledger&)> work);

/// Throws Refusal: it was not started, or not to its end.
void require_started(const core::migration::Ledger::Found& found, const std::string& plan);

/// Throws Refusal. Before a lock moves there, who knows the target alone has to be kept out; before
/// one moves back, the target has to be the one that the plan moves to.
void require_noted_target(const core::migration::Ledger::Found& found, core::migration::Goal goal);

/// A plan that was started between the stores of this configuration; else throws.
core::migration::Ledger::Found started_plan(MigrateSession& session, const std::string& plan,
                                            bool ask_target);

/// Throws Refusal: a route of this configuration has the plan and takes locks that the plan, as it
/// was started, does not govern. Its programs would go by the plan's gate, and nobody else.
void require_governed(const MigrateSession& session, const core::migration::Plan& plan);

}  // namespace dlock::cli
