// SPDX-License-Identifier: Apache-2.0
//
// LeasedLedger: the notes of a plan with a leased gate. The plan's text is in both stores and in
// that of the gate; the gate is beside it. Each write is a compare-and-set, and every process may
// repeat it. The plan needs nothing that a source which forgets has lost.
#pragma once

#include <optional>
#include <string>

#include "migration/leased/leased_note.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {

/// Loop only.
class LeasedLedger {
 public:
  struct Found {
    Failure failure;
    std::optional<Plan> plan;        ///< empty: it was not started
    std::optional<LeasedGate> gate;  ///< empty, with a listed plan: it is lost
    bool listed = false;             ///< the target lists the plan as unfinished
  };

  explicit LeasedLedger(LeasedStores stores) : stores_(std::move(stores)) {}

  /// Asks the gate's store and the target.
  asio::awaitable<Found> find(std::string plan);
  /// Returns config_unsafe with the reason for which the plan cannot be published now. Only reads.
  asio::awaitable<Failure> objection(Plan plan);
  /// Writes the gate, the plan's text and the lists, or what is missing of them. The gate begins at
  /// the end, in S_ALONE. An equal plan that is already published keeps its id. Returns
  /// config_unsafe with the reason if the plan is refused, also for one that has lost its gate.
  asio::awaitable<Failure> publish(Plan plan);
  /// The same for a plan that has lost its gate: writes `gate`, unless one is there.
  asio::awaitable<Failure> restore(Plan plan, LeasedGate gate);
  /// Writes the certificate into the target. The gate is FINAL.
  asio::awaitable<Failure> certify(Plan plan);
  /// Removes the plan from its stores. The gate is ENDED, and remains.
  asio::awaitable<Failure> withdraw(Plan plan);

  const LeasedStores& stores() const noexcept { return stores_; }

 private:
  asio::awaitable<Failure> publish_text(Plan plan);
  asio::awaitable<Failure> begin(Plan plan, LeasedNote::Look look);
  asio::awaitable<Failure> replace(LeasedNote::Look look, LeasedGate gate);
  Env& env() const { return stores_.gate->env(); }
  asio::awaitable<Result<Plan>> known_plan(std::string plan);
  bool has_third_store() const {
    return stores_.gate != stores_.from && stores_.gate != stores_.to;
  }

  const LeasedStores stores_;
};

/// Returns the gate of a plan whose start is not complete.
LeasedGate first_gate(const Plan& plan, Env& env);

}  // namespace dlock::core::migration
