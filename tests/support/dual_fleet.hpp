// SPDX-License-Identifier: Apache-2.0
//
// Programs of a plan in mode dual over two in-process stores S and T under virtual time, each with
// connections of its own; and the hands of an operator.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migration/dual/dual_acquisition.hpp"
#include "migration/dual/dual_coordinator.hpp"
#include "migration/dual/registrar.hpp"
#include "tests/support/memory_stores.hpp"

namespace dlock::tests {

class DualFleet : public MemoryStores {
 public:
  /// What an acquire came to.
  struct Got : Outcome {
    std::shared_ptr<core::migration::DualAcquisition> acquisition;
  };
  /// One process.
  struct Member {
    core::migration::DualStores stores;
    std::shared_ptr<core::migration::Registrar> registrar;
  };
  using Options = core::migration::DualCoordinator::Options;

  DualFleet() {
    static int number = 0;
    const auto tail = std::to_string(++number);
    servers_ = {"dual-S" + tail, "dual-T" + tail};
    server_s = memory::SharedStore::get(servers_[0]);
    server_t = memory::SharedStore::get(servers_[1]);
    plan.name = "p1";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.mode = MigrateMode::dual;
    plan.window = "t";
    plan.leased_target = false;
    plan.registration = std::chrono::seconds(3);
    plan.names = {"a", "b"};
    plan.patterns = {"more/**"};
    operator_ = connections();
  }
  ~DualFleet() {
    for (const auto& stores : connected_) {
      for (const auto& store : {stores.from, stores.to}) close(store);
    }
    run_for(std::chrono::minutes(1));
  }

  Member program(int phase) {
    Member member;
    member.stores = connections();
    member.registrar = std::make_shared<core::migration::Registrar>(
        member.stores, core::migration::Registrar::Settings{plan.name, phase});
    return member;
  }
  /// It ends in good order.
  void stop(Member& member) {
    for (const auto& store : {member.stores.from, member.stores.to}) close(store);
    run_for(std::chrono::milliseconds(10));
  }

  std::shared_ptr<Got> start_acquire(Member& member, const std::string& name,
                                     std::optional<std::chrono::milliseconds> wait = {}) {
    auto got = std::make_shared<Got>();
    core::migration::DualAcquisition::Request request;
    request.source.name = request.target.name = name;
    request.source.limits = request.target.limits = limits_of(env(), wait);
    request.source.diagnostics = &got->diagnostics;
    got->acquisition = core::migration::DualAcquisition::start(member.registrar, std::move(request),
                                                               write_down(env(), got));
    return got;
  }
  std::shared_ptr<Got> acquire(Member& member, const std::string& name,
                               std::optional<std::chrono::milliseconds> wait = {}) {
    auto got = start_acquire(member, name, wait);
    run_for(std::chrono::milliseconds(5));
    return got;
  }
  std::shared_ptr<Got> try_acquire(Member& member, const std::string& name) {
    return acquire(member, name, std::chrono::milliseconds(0));
  }

  std::shared_ptr<core::migration::DualCoordinator> coordinator(Options options) {
    return std::make_shared<core::migration::DualCoordinator>(operator_, plan, options);
  }
  Options waiting(Duration wait, bool legacy_gone = true) {
    Options options;
    options.deadline = env().now() + wait;
    options.legacy_gone = legacy_gone;
    return options;
  }
  /// One step, with that much patience; the time that it took has passed.
  core::migration::DualReport take(core::migration::Goal goal,
                                   Duration wait = std::chrono::seconds(10),
                                   bool legacy_gone = true) {
    const auto by = coordinator(waiting(wait, legacy_gone));
    return run(by->take(goal), wait + std::chrono::seconds(1));
  }
  /// What it comes to is there when time has passed.
  std::shared_ptr<std::optional<core::migration::DualReport>> begin_take(
      core::migration::Goal goal, const std::shared_ptr<core::migration::DualCoordinator>& by) {
    return begin(by->take(goal), by);
  }
  core::migration::DualReport start(std::optional<std::pair<int, int>> at = {},
                                    Duration wait = std::chrono::seconds(10)) {
    const auto by = coordinator(waiting(wait));
    auto report = run(by->start(at), wait + std::chrono::seconds(1));
    if (report.window) plan.id = report.window->plan_id;
    return report;
  }

  core::migration::DualReport withdraw(Duration wait) {
    const auto by = coordinator(waiting(wait));
    return run(by->withdraw(), wait + std::chrono::seconds(1));
  }

  core::migration::Window window() const {
    return core::migration::parse_window(server_t->note("window/p1")).value();
  }
  void set_window(const core::migration::Window& window) {
    server_t->set_note("window/p1", server_t->note("window/p1"), to_text(window));
  }
  /// The window admits these; as an operator would have moved it there.
  void admit(int lo, int hi, std::uint64_t floor = 0) {
    auto moved = window();
    moved.lo = lo;
    moved.hi = hi;
    moved.floor = floor;
    ++moved.ver;
    ++moved.seq;
    set_window(moved);
  }
  void lose_window() { server_t->set_note("window/p1", server_t->note("window/p1"), ""); }
  /// A program that registered, and died.
  std::string add_dead_program(int phase) {
    add_dead_programs(1, phase);
    return "dead0000-0000";
  }
  void add_dead_programs(std::size_t count, int phase) {
    auto with_them = window();
    const auto lo = std::exchange(with_them.lo, phase);
    const auto hi = std::exchange(with_them.hi, phase);
    for (std::size_t i = 0; i < count; ++i) {
      core::migration::Program dead;
      dead.id = fmt::format("dead0000-{:04x}", i);
      dead.phase = phase;
      dead.pid = 4711;
      dead.host = "h";
      dead.app = "worker";
      core::migration::enter(with_them, dead);
    }
    with_them.lo = lo;
    with_them.hi = hi;
    set_window(with_them);
  }

  core::migration::DualStores connections() {
    core::migration::DualStores stores;
    stores.from = make_store("s", servers_[0]);
    stores.to = make_store("t", servers_[1]);
    stores.window = stores.to;
    connected_.push_back(stores);
    return stores;
  }
  const core::migration::DualStores& operators() const { return operator_; }

  std::shared_ptr<memory::SharedStore> server_s;
  std::shared_ptr<memory::SharedStore> server_t;
  core::migration::Plan plan;

 private:
  std::vector<std::string> servers_;
  std::vector<core::migration::DualStores> connected_;
  core::migration::DualStores operator_;
};

}  // namespace dlock::tests
