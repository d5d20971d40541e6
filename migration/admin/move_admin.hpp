// SPDX-License-Identifier: Apache-2.0
//
// MoveAdmin: what an operator does to a plan in mode move. Reached through Admin.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "migration/admin/requests.hpp"
#include "migration/admin/results.hpp"
#include "migration/ledger.hpp"
#include "migration/move/plan_coordinator.hpp"
#include "migration/move/survey.hpp"

namespace dlock::core::migration {

class Session;

/// Lifetime: the session outlives it. Admin documents threads and exceptions.
class MoveAdmin {
 public:
  explicit MoveAdmin(Session& session) : session_(session) {}

  /// Checks the stores and the locks that they show. Writes nothing.
  PlanReport plan(const PlanRequest& request);
  /// Publishes the plan in both stores, unless there are objections. Repeats what is missing.
  PlanReport start(const StartRequest& request);
  PlanStatus status();
  StepsReport step(const StepRequest& request);

 private:
  /// Throws Refusal if the plan was started with a leased gate.
  Ledger::Found find(bool ask_target);
  Failure with_ledger(std::function<asio::awaitable<Failure>(Ledger&)> work);
  /// Throws Refusal or LockError if the work fails.
  void demand(std::function<asio::awaitable<Failure>(Ledger&)> work);
  /// Throws Refusal if the plan was not started, or if its start is not complete.
  void require_started(const Ledger::Found& found) const;
  /// Throws Refusal if the target does not have the plan's notes. With them it refuses clients that
  /// know the target alone. A rollback, too, needs the target with which the plan was started.
  static void require_noted_target(const Ledger::Found& found, Goal goal);
  /// Throws Refusal if a route of this configuration has the plan and matches locks that the
  /// started plan does not govern. Only programs with that route would follow the gate for them.
  void require_governed(const Plan& plan) const;
  /// Returns the plan, started between the stores of this configuration. Throws Refusal otherwise.
  Ledger::Found started(bool ask_target);

  PlanReport make(const PlanRequest& request);
  void object_to_routes_before(const Plan& plan, std::vector<std::string>& objections) const;
  void object_to_plans(PlanReport& report);
  void look_at_names(PlanReport& report);

  PlanCoordinator::Report drive(const StepRequest& request, const Plan& plan);

  Session& session_;
};

}  // namespace dlock::core::migration
