// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_pattern.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "cli/output/migrate_output.hpp"
#include "cli/output/output.hpp"
#include "cli/verbs/migrate/migrate_plan.hpp"
#include "cli/verbs/migrate/migrate_refusal.hpp"
#include "migration/gate_note.hpp"
#include "migration/move/plan_coordinator.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using moves::PlanCoordinator;
using Stores = MigrateSession::Stores;
using std::chrono::milliseconds;

constexpr milliseconds kDefaultWait{30'000};

void check_names(const Arguments& arguments, const moves::Plan& plan, moves::Goal goal) {
  if (arguments.all) return;
  if (goal == moves::Goal::finish) {
    throw Misuse{fmt::format("plan '{}' is finished as a whole; write --all", plan.name)};
  }
  for (const auto& name : arguments.names) {
    if (!plan.has(name)) throw Refusal{fmt::format("'{}' is not in plan '{}'", name, plan.name)};
  }
}

PlanCoordinator::Report take(MigrateSession& session, const Arguments& arguments,
                             const moves::Plan& plan, moves::Goal goal) {
  const auto coordinator = std::make_shared<std::shared_ptr<PlanCoordinator>>();
  return session.run<PlanCoordinator::Report>(
      [&, coordinator](Stores stores) {
        PlanCoordinator::Options options;
        options.deadline = deadline_of(arguments, stores.from->env());
        options.target_gone = arguments.target_gone;
        options.withdraw = arguments.withdraw;
        options.strangers_gone = arguments.yes;
        *coordinator = std::make_shared<PlanCoordinator>(stores.from, stores.to, plan, options);
        return arguments.all ? (*coordinator)->drive_all(goal)
                             : (*coordinator)->take(goal, arguments.names);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

moves::GateNote::Look read_gate(MigrateSession& session, const moves::Plan& plan) {
  auto look = session.run<moves::GateNote::Look>(
      [&](Stores stores) -> asio::awaitable<moves::GateNote::Look> {
        moves::GateNote note(stores.from, plan.name);
        auto seen = co_await note.read();
        co_return seen;
      });
  if (look.failure.error) fail(look.failure);
  return look;
}

void certify(MigrateSession& session, const moves::Plan& plan, const moves::Gate& gate) {
  auto home = plan;
  home.floor = gate.floor;
  const auto failure =
      with_ledger(session, [&](moves::Ledger& ledger) { return ledger.certify(home); });
  if (failure.error) fail(failure);
}

void withdraw(MigrateSession& session, const moves::Plan& plan) {
  const auto failure =
      with_ledger(session, [&](moves::Ledger& ledger) { return ledger.withdraw(plan); });
  if (failure.error) fail(failure);
}

}  // namespace

TimePoint deadline_of(const Arguments& arguments, Env& env) {
  const auto wait = arguments.wait.value_or(kDefaultWait);
  return wait == kWaitForever ? kNever : env.now() + wait;
}

Exit worst(const std::vector<moves::StepReport>& steps) {
  auto result = Exit::ok;
  for (const auto& step : steps) {
    switch (step.verdict) {
      case moves::Verdict::refused:
        return Exit::migrate_refused;
      case moves::Verdict::unreachable:
      case moves::Verdict::stopped:
        result = Exit::unavailable;
        break;
      case moves::Verdict::waiting:
        if (result == Exit::ok) result = Exit::migrate_waits;
        break;
      case moves::Verdict::done:
        break;
    }
  }
  return result;
}

int pattern_step(MigrateSession& session, const Arguments& arguments,
                 const moves::Ledger::Found& found, moves::Goal goal) {
  const auto& plan = *found.plan;
  check_names(arguments, plan, goal);
  auto report = take(session, arguments, plan, goal);
  StepsOutput output;
  output.plan = plan;
  output.steps = std::move(report.steps);
  output.strangers = std::move(report.strangers);
  if (report.refusal) output.steps.push_back(std::move(*report.refusal));
  const auto result = worst(output.steps);
  output.gate = read_gate(session, plan).gate;
  // Whoever made the gate final may have died before the certificate was written.
  if (result == Exit::ok && report.finished && goal == moves::Goal::finish && output.gate) {
    certify(session, plan, *output.gate);
  }
  output.finished =
      result == Exit::ok && report.finished && (found.finished || goal == moves::Goal::finish);
  if (result == Exit::ok && report.withdrawn) {
    withdraw(session, plan);
    output.withdrawn = true;
  }
  print_line(arguments.json ? to_json(output) : to_text(output));
  return status(result);
}

}  // namespace dlock::cli
