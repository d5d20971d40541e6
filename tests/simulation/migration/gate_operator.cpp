// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/gate_operator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migration/gate_note.hpp"
#include "migration/ledger.hpp"
#include "migration/move/plan_coordinator.hpp"

namespace dlock::simulation::migration {
namespace {

using core::migration::GateNote;
using core::migration::Ledger;
using core::migration::PlanCoordinator;

asio::awaitable<void> start(Command command, World& world, Orders& orders) {
  Ledger ledger(command.source, command.target);
  auto plan = orders.plan;
  plan.id = fmt::format("{:016x}", world.random());
  auto failure = co_await ledger.objection(plan);
  if (!failure.error) failure = co_await ledger.publish(plan);
  if (!failure.error) orders.started = true;
  if (failure.error == errc::config_unsafe) ++orders.refused;
  world.trace("{}: start {}: {} {}", command.process.name(), plan.name, failure.error.message(),
              failure.text);
}

asio::awaitable<void> certify(Command command, Plan plan) {
  GateNote note(command.source, plan.name);
  const auto look = co_await note.read();
  if (!look.gate || look.gate->state != core::migration::GateState::final_) co_return;
  plan.floor = look.gate->floor;
  Ledger ledger(command.source, command.target);
  co_await ledger.certify(std::move(plan));
}

bool is_whole(const PlanCoordinator::Report& report) {
  return !report.refusal &&
         std::all_of(report.steps.begin(), report.steps.end(), [](const auto& step) {
           return step.verdict == core::migration::Verdict::done;
         });
}

Goal goal_of(Aim aim) {
  if (aim == Aim::finish) return Goal::finish;
  return aim == Aim::advance ? Goal::advance : Goal::rollback;
}

Aim against(Aim aim) {
  return aim == Aim::rollback || aim == Aim::withdraw ? Aim::advance : Aim::rollback;
}

}  // namespace

const char* to_string(Aim aim) noexcept {
  static constexpr const char* kWords[] = {"start", "advance", "rollback", "withdraw", "finish"};
  return kWords[static_cast<int>(aim)];
}

asio::awaitable<void> carry_out(Command command, World& world, Orders& orders) {
  auto aim = orders.aim;
  const bool contrary = orders.contrary && world.chance(0.15);
  const bool again = aim == Aim::start;
  if (contrary) aim = again || world.chance(0.3) ? Aim::start : against(aim);
  Ledger ledger(command.source, command.target);
  const auto found = co_await ledger.find(orders.plan.name, true);
  if (found.failure.error) co_return;
  const bool in_effect = found.plan && (found.listed || found.finished);
  // As each command says then: the target has lost its notes, or a start was broken off.
  const bool noted = found.finished || (found.known_in_target && found.listed_in_target);
  bool is_broken_off = false;
  if (!in_effect && aim == Aim::withdraw) {
    const auto left = co_await ledger.is_listed_anywhere(orders.plan.name);
    is_broken_off = left.value.value_or(false);
  }
  if (aim == Aim::start || is_broken_off || (!in_effect && aim != Aim::withdraw) ||
      (!noted && aim == Aim::advance)) {
    co_await start(command, world, orders);
    co_return;
  }
  if (!in_effect) co_return;
  // As the refusal says: a late command has begun to withdraw it.
  GateNote note(command.source, orders.plan.name);
  const auto look = co_await note.read();
  if (look.gate && look.gate->state == core::migration::GateState::ended) aim = Aim::withdraw;
  const auto goal = goal_of(aim);
  PlanCoordinator::Options options;
  options.deadline = command.process.now() + world.between({}, seconds(8));
  options.withdraw = aim == Aim::withdraw;
  options.strangers_gone = orders.strangers_gone;
  const auto by =
      std::make_shared<PlanCoordinator>(command.source, command.target, *found.plan, options);
  const bool by_name = (aim == Aim::advance || aim == Aim::rollback) && world.chance(0.3);
  PlanCoordinator::Report report;
  if (by_name) {
    std::vector<std::string> names{orders.choose()};
    report = co_await by->take(goal, std::move(names));
  } else {
    report = co_await by->drive_all(goal);
  }
  world.trace("{}: {} {}{}: {} steps, {} {}", command.process.name(), to_string(aim),
              orders.plan.name, by_name ? " by name" : "", report.steps.size(),
              report.finished    ? "finished"
              : report.withdrawn ? "withdrawn"
                                 : "",
              report.refusal ? report.refusal->text : "");
  for (const auto& step : report.steps) {
    world.trace("  '{}': {} {}", step.name, static_cast<int>(step.verdict), step.text);
  }
  if (!by_name) orders.done = aim == orders.aim && is_whole(report);
  if (aim == Aim::finish && report.finished && !report.refusal) {
    co_await certify(command, *found.plan);
  }
  if (report.withdrawn) {
    const auto failure = co_await ledger.withdraw(*found.plan);
    world.trace("{}: withdrawn: {} {}", command.process.name(), failure.error.message(),
                failure.text);
  }
}

}  // namespace dlock::simulation::migration
