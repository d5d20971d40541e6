// SPDX-License-Identifier: Apache-2.0
//
// Two in-process stores S and T under virtual time, as one or several programs see them: for the
// rules of migrations, whose stores need not be real.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dlock/spi/error.hpp"
#include "migration/ledger.hpp"
#include "migration/move/coordinator.hpp"
#include "migration/move/migrating_acquisition.hpp"
#include "migration/move/plan_coordinator.hpp"
#include "tests/support/memory_stores.hpp"

namespace dlock::tests {

class TwoStores : public MemoryStores {
 public:
  /// The result of an acquire.
  struct Outcome : tests::Outcome {
    std::shared_ptr<core::migration::MigratingAcquisition> moving;
  };

  TwoStores() {
    static int number = 0;
    ++number;
    names_ = {"S" + std::to_string(number), "T" + std::to_string(number)};
    // A server exists while a store has it open.
    server_s = memory::SharedStore::get(names_[0]);
    server_t = memory::SharedStore::get(names_[1]);
    s = make_store("s", names_[0]);
    t = make_store("t", names_[1]);
    plan.name = "p1";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.leased_target = false;
    plan.patterns = {"a", "b"};
    const auto text = core::migration::to_text(plan);
    server_s->set_note("plan/p1", "", text);
    server_t->set_note("plan/p1", "", text);
    server_s->set_note("gate/p1", "", to_text(core::migration::opened_gate(plan, {}, 0)));
    server_s->set_note("plans-out", "", core::migration::list_text({"p1"}));
    server_t->set_note("plans-in", "", core::migration::list_text({"p1"}));
  }
  ~TwoStores() {
    for (const auto& store : {s, t}) close(store);
    run_for(std::chrono::minutes(1));
  }

  /// Through the plan, as a route with `migrate` does.
  std::shared_ptr<Outcome> acquire(const std::string& name,
                                   std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    auto outcome = std::make_shared<Outcome>();
    core::migration::MigratingAcquisition::Request request;
    request.source = request_for(name, wait);
    request.source.diagnostics = &outcome->diagnostics;
    request.target = request_for(name, wait);
    request.plan = plan.name;
    request.poll = std::chrono::seconds(1);
    request.stores = {"s", "t"};
    request.gate = gate;
    outcome->moving = core::migration::MigratingAcquisition::start(s, t, std::move(request),
                                                                   write_down(env(), outcome));
    return outcome;
  }

  /// It is granted or waits by now.
  std::shared_ptr<Outcome> acquire_now(const std::string& name) {
    auto outcome = acquire(name);
    run_for(std::chrono::milliseconds(10));
    return outcome;
  }

  /// In one store alone, as a plain route does.
  std::shared_ptr<Outcome> acquire_in(
      const std::shared_ptr<core::Store>& store, const std::string& name,
      std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    auto outcome = std::make_shared<Outcome>();
    auto request = request_for(name, wait);
    request.diagnostics = &outcome->diagnostics;
    store->acquire(std::make_shared<core::Acquisition>(store, request, write_down(env(), outcome)));
    return outcome;
  }

  std::shared_ptr<Outcome> acquire_now_in(
      const std::shared_ptr<core::Store>& store, const std::string& name,
      std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    auto outcome = acquire_in(store, name, wait);
    run_for(std::chrono::milliseconds(10));
    return outcome;
  }

  /// Returns a coordinator that knows the present gate, unless `options` has one.
  std::shared_ptr<core::migration::Coordinator> coordinator(
      core::migration::Coordinator::Options options = {}) {
    if (!options.gate) {
      options.gate = std::make_shared<core::migration::GateBelief>(plan.name);
      std::string why;
      options.gate->learn(server_s->note(core::migration::gate_key(plan.name)), why);
    }
    return std::make_shared<core::migration::Coordinator>(s, t, plan, options);
  }

  /// Starts one step towards a goal, as an operator's command does. Its report exists when time has
  /// passed.
  std::shared_ptr<std::optional<core::migration::StepReport>> take(
      core::migration::Goal goal, const std::string& name,
      const std::shared_ptr<core::migration::Coordinator>& by) {
    return begin(by->take(goal, name), by);
  }
  core::migration::StepReport take_now(core::migration::Goal goal, const std::string& name) {
    auto result = take(goal, name, coordinator());
    run_for(std::chrono::milliseconds(10));
    return result->value_or(core::migration::StepReport{});
  }

  /// Turns the gate to FINAL, as `dlock migrate finish` does. Returns the plan with its floor, for
  /// certify().
  core::migration::Plan finish() {
    const auto by = std::make_shared<core::migration::PlanCoordinator>(
        s, t, plan, core::migration::PlanCoordinator::Options());
    EXPECT_TRUE(run(by->drive_all(core::migration::Goal::finish)).finished);
    const auto gate_now =
        core::migration::parse_gate(server_s->note(core::migration::gate_key(plan.name)));
    auto home = plan;
    if (gate_now) home.floor = gate_now->floor;
    return home;
  }

  /// Writes the certificate of a plan that finish() has returned.
  void certify(core::migration::Plan home) {
    core::migration::Ledger ledger(s, t);
    EXPECT_FALSE(run(ledger.certify(std::move(home))).error);
  }

  /// Another plan from S to T, not started.
  core::migration::Plan another_plan(const std::string& name, const std::string& id,
                                     std::vector<std::string> patterns) const {
    auto other = plan;
    other.name = name;
    other.id = id;
    other.patterns = std::move(patterns);
    return other;
  }

  /// Returns the lock's record in S.
  std::optional<core::migration::Record> record(const std::string& name) {
    return core::migration::parse_record(server_s->record(name));
  }
  void set_record(const std::string& name, const core::migration::Record& record) {
    server_s->set_record(name, server_s->record(name), core::migration::to_text(record), 0);
  }

  const std::string& server_name_t() const { return names_[1]; }

  std::shared_ptr<memory::SharedStore> server_s;
  std::shared_ptr<memory::SharedStore> server_t;
  std::shared_ptr<core::Store> s;
  std::shared_ptr<core::Store> t;
  core::migration::Plan plan;
  std::shared_ptr<core::migration::GateBelief> gate =
      std::make_shared<core::migration::GateBelief>("p1");

 private:
  core::Acquisition::Request request_for(const std::string& name,
                                         std::optional<std::chrono::milliseconds> wait) {
    core::Acquisition::Request request;
    request.name = name;
    request.limits = limits_of(env(), wait);
    return request;
  }

  std::vector<std::string> names_;
};

/// The store that it was granted by.
inline std::string where(const LockHandle& handle) { return handle ? handle.store() : "nowhere"; }

/// Returns the owner of a claim that a test makes directly.
inline Owner owner(const std::string& id) {
  Owner made;
  made.id = id;
  made.pid = 4711;
  made.host = "h";
  made.app = "worker";
  return made;
}

}  // namespace dlock::tests
