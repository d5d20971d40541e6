// SPDX-License-Identifier: Apache-2.0
//
// LeasedAdmin: what an operator does to a plan with a leased gate. Reached through Admin.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "migration/admin/requests.hpp"
#include "migration/admin/results.hpp"
#include "migration/leased/leased_coordinator.hpp"

namespace dlock::core::migration {

class Session;

/// Lifetime: the session outlives it. Admin documents threads and exceptions.
class LeasedAdmin {
 public:
  explicit LeasedAdmin(Session& session) : session_(session) {}

  /// Checks the stores. Writes nothing.
  LeasedPlanReport plan(const PlanRequest& request);
  struct Start {
    std::optional<LeasedPlanReport> refused;  ///< has objections; nothing was done
    LeasedStepReport step;                    ///< otherwise
  };
  /// Publishes the plan, or what is missing of it.
  Start start(const StartRequest& request);
  LeasedStatus status();
  LeasedStepReport step(const StepRequest& request);

 private:
  using Work = std::function<asio::awaitable<LeasedReport>(LeasedCoordinator&)>;

  LeasedPlanReport make(const PlanRequest& request);
  LeasedLedger::Found find();
  /// Throws Refusal if the plan was not started between the stores of this configuration.
  LeasedLedger::Found started();
  LeasedReport drive(const Plan& plan, LeasedCoordinator::Options options,
                     std::chrono::milliseconds wait, Work work);

  Session& session_;
};

}  // namespace dlock::core::migration
