// SPDX-License-Identifier: Apache-2.0
//
// Programs of a plan with a leased gate over two in-process stores S and T under virtual time, each
// with its own connections. The gate is in T.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migration/leased/leased_acquisition.hpp"
#include "migration/plan.hpp"
#include "tests/support/memory_stores.hpp"

namespace dlock::tests {

class LeasedFleet : public MemoryStores {
 public:
  using State = core::migration::LeasedState;
  /// The result of an acquire.
  struct Got : Outcome {
    std::shared_ptr<core::migration::LeasedAcquisition> acquisition;
  };
  /// One process.
  struct Member {
    core::migration::LeasedStores stores;
    std::shared_ptr<core::migration::GateReader> reader;
  };

  LeasedFleet() {
    static int number = 0;
    const auto tail = std::to_string(++number);
    servers_ = {"leased-S" + tail, "leased-T" + tail};
    server_s = memory::SharedStore::get(servers_[0]);
    server_t = memory::SharedStore::get(servers_[1]);
    plan.name = "p1";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.leased_target = false;
    plan.patterns = {"**"};
    server_t->set_note("plan/p1", "", to_text(plan));
    core::migration::LeasedGate gate;
    gate.plan = plan.name;
    gate.plan_id = plan.id;
    gate.from = plan.from;
    gate.to = plan.to;
    gate.born = "fedcba9876543210";
    gate.lease = kLease;
    server_t->set_note("leased/p1", "", to_text(gate));
  }
  ~LeasedFleet() {
    for (const auto& stores : connected_) {
      for (const auto& store : {stores.from, stores.to}) close(store);
    }
    run_for(std::chrono::minutes(1));
  }

  Member program() {
    Member member;
    member.stores.from = make_store("s", servers_[0]);
    member.stores.to = make_store("t", servers_[1]);
    member.stores.gate = member.stores.to;
    connected_.push_back(member.stores);
    member.reader = std::make_shared<core::migration::GateReader>(member.stores, plan.name);
    return member;
  }

  std::shared_ptr<Got> start_acquire(Member& member, const std::string& name,
                                     std::optional<std::chrono::milliseconds> wait = {}) {
    auto got = std::make_shared<Got>();
    core::migration::LeasedHold::Requests requests;
    requests.reader = member.reader;
    requests.source.name = requests.target.name = name;
    requests.source.limits = requests.target.limits = limits_of(env(), wait);
    requests.source.diagnostics = &got->diagnostics;
    got->acquisition =
        core::migration::LeasedAcquisition::start(std::move(requests), write_down(env(), got));
    return got;
  }
  std::shared_ptr<Got> acquire(Member& member, const std::string& name,
                               std::optional<std::chrono::milliseconds> wait = {}) {
    auto got = start_acquire(member, name, wait);
    run_for(std::chrono::milliseconds(5));
    return got;
  }

  core::migration::LeasedGate gate() const {
    return core::migration::parse_leased_gate(server_t->note("leased/p1")).value();
  }
  void set_gate(const core::migration::LeasedGate& gate) {
    server_t->set_note("leased/p1", server_t->note("leased/p1"), to_text(gate));
  }
  /// As an operator turns it, without the wait.
  void turn(State state) { set_gate(*core::migration::turned_to(gate(), state, wall_clock_ms)); }
  /// As an operator turns it; programs have read the gate.
  void turn_in_time(State state) {
    turn(state);
    run_for(core::migration::turn_wait(kLease));
  }
  void lose_gate() { server_t->set_note("leased/p1", server_t->note("leased/p1"), ""); }

  static constexpr std::chrono::seconds kLease{3};
  std::int64_t wall_clock_ms = 0;
  std::shared_ptr<memory::SharedStore> server_s;
  std::shared_ptr<memory::SharedStore> server_t;
  core::migration::Plan plan;

 private:
  std::vector<std::string> servers_;
  std::vector<core::migration::LeasedStores> connected_;
};

}  // namespace dlock::tests
