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

/// As Admin says of each call. The session outlives it.
class MoveAdmin {
 public:
  explicit MoveAdmin(Session& session) : session_(session) {}

  /// Checks stores and names; changes nothing.
  PlanReport plan(const PlanRequest& request);
  /// Publishes the plan in both stores, or what is missing of it, unless there are objections.
  PlanReport start(const StartRequest& request);
  PlanStatus status();
  StepsReport step(const StepRequest& request);

 private:
  Ledger::Found find(bool ask_target);
  Failure with_ledger(std::function<asio::awaitable<Failure>(Ledger&)> work);
  /// Throws.
  void demand(std::function<asio::awaitable<Failure>(Ledger&)> work);
  /// Throws Refusal: it was not started, or not to its end.
  void require_started(const Ledger::Found& found) const;
  /// Throws Refusal. Before a lock moves there, who knows the target alone has to be kept out;
  /// before one moves back, the target has to be the one that the plan moves to.
  static void require_noted_target(const Ledger::Found& found, Goal goal);
  /// Throws Refusal: a route of this configuration has the plan and takes locks that the plan, as
  /// it was started, does not govern. Its programs would go by the plan's gate, and nobody else.
  void require_governed(const Plan& plan) const;
  /// A plan that was started between the stores of this configuration; else throws.
  Ledger::Found started(bool ask_target);

  PlanReport make(const PlanRequest& request);
  void object_to_routes_before(const Plan& plan, std::vector<std::string>& objections) const;
  void object_to_plans(PlanReport& report);
  void look_at_names(PlanReport& report);

  PlanCoordinator::Report drive(const StepRequest& request, const Plan& plan);

  Session& session_;
};

}  // namespace dlock::core::migration
