// SPDX-License-Identifier: Apache-2.0
//
// DualAdmin: what an operator does to a plan in mode dual. Reached through Admin.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "migration/admin/requests.hpp"
#include "migration/admin/results.hpp"
#include "migration/dual/dual_coordinator.hpp"

namespace dlock::core::migration {

class Session;

/// As Admin says of each call. The session outlives it.
class DualAdmin {
 public:
  explicit DualAdmin(Session& session) : session_(session) {}

  /// The store that keeps the window, as the route writes it; may be empty.
  const std::string& window() const noexcept;

  /// Checks stores and names; changes nothing.
  DualPlanReport plan(const PlanRequest& request);
  struct Start {
    std::optional<DualPlanReport> refused;  ///< with its objections; nothing was done
    DualStepReport step;                    ///< else
  };
  /// Publishes the plan, or what is missing of it.
  Start start(const StartRequest& request);
  DualStatus status();
  DualStepReport step(const StepRequest& request);

 private:
  using Work = std::function<asio::awaitable<DualReport>(std::shared_ptr<DualCoordinator>)>;

  /// The window's store, too. Asks the ends once where the route does not name it.
  const DualStores& stores();
  template <class T>
  T run(std::function<asio::awaitable<T>(DualStores)> work, std::function<void()> stop = {});
  DualPlanReport make(const PlanRequest& request);
  void name_locks(DualPlanReport& report, const std::vector<std::string>& names,
                  const std::vector<End>& ends) const;
  DualLedger::Found find();
  DualLedger::Found started();
  /// Throws Refusal.
  void require_started(const DualLedger::Found& found) const;
  DualReport take(const Plan& plan, DualCoordinator::Options options,
                  std::chrono::milliseconds wait, Work work);
  Failure with_ledger(std::function<asio::awaitable<Failure>(DualLedger&)> work);

  Session& session_;
  std::optional<DualStores> stores_;
};

}  // namespace dlock::core::migration
