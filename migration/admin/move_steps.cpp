// SPDX-License-Identifier: Apache-2.0
//
// MoveAdmin's steps: advance, rollback, finish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "migration/admin/move_admin.hpp"
#include "migration/admin/session.hpp"
#include "migration/gate_note.hpp"

namespace dlock::core::migration {
namespace {

using Stores = Session::Stores;

/// Throws Refusal: the plan does not have a lock of the request.
void require_names(const StepRequest& request, const Plan& plan) {
  if (request.all) return;
  for (const auto& name : request.names) {
    if (!plan.has(name)) throw Refusal{fmt::format("'{}' is not in plan '{}'", name, plan.name)};
  }
}

GateNote::Look read_gate(Session& session, const Plan& plan) {
  auto look = session.run<GateNote::Look>([&](Stores stores) -> asio::awaitable<GateNote::Look> {
    GateNote note(stores.from, plan.name);
    auto seen = co_await note.read();
    co_return seen;
  });
  if (look.failure.error) fail(look.failure);
  return look;
}

}  // namespace

Verdict verdict_on(const std::vector<StepReport>& steps) {
  auto worst = Verdict::done;
  for (const auto& step : steps) {
    switch (step.verdict) {
      case Verdict::refused:
        return Verdict::refused;
      case Verdict::unreachable:
      case Verdict::stopped:
        worst = Verdict::unreachable;
        break;
      case Verdict::waiting:
        if (worst == Verdict::done) worst = Verdict::waiting;
        break;
      case Verdict::done:
        break;
    }
  }
  return worst;
}

Ledger::Found MoveAdmin::find(bool ask_target) {
  auto found = session_.run<Ledger::Found>(
      [plan = session_.plan(), ask_target](Stores stores) -> asio::awaitable<Ledger::Found> {
        Ledger ledger(stores.from, stores.to);
        auto answer = co_await ledger.find(plan, ask_target);
        co_return answer;
      });
  if (found.plan && found.plan->is_leased()) {
    throw Refusal{fmt::format(
        "plan '{}' was started with `gate: {}`; write it into the route: `{}`", session_.plan(),
        found.plan->gate, route_line(session_.patterns().front(), *found.plan))};
  }
  return found;
}

Failure MoveAdmin::with_ledger(std::function<asio::awaitable<Failure>(Ledger&)> work) {
  return session_.run<Failure>([work = std::move(work)](Stores stores) -> asio::awaitable<Failure> {
    Ledger ledger(stores.from, stores.to);
    auto failure = co_await work(ledger);
    co_return failure;
  });
}

void MoveAdmin::demand(std::function<asio::awaitable<Failure>(Ledger&)> work) {
  const auto failure = with_ledger(std::move(work));
  if (failure.error) fail(failure);
}

void MoveAdmin::require_started(const Ledger::Found& found) const {
  const auto& plan = session_.plan();
  if (!found.plan) {
    throw Refusal{fmt::format("plan '{0}' was not started; run `dlock migrate start {0}`", plan)};
  }
  if (!found.listed && !found.finished) throw Refusal{start_broken_off(plan)};
}

void MoveAdmin::require_noted_target(const Ledger::Found& found, Goal goal) {
  if (found.finished) return;
  const auto& plan = *found.plan;
  if (!found.known_in_target && goal != Goal::finish) {
    throw Refusal{fmt::format(
        "the store '{0}' does not know plan '{1}': it has lost its notes, or is another "
        "store than the one that the plan moves to; correct its url, or run `dlock "
        "migrate start {1}`, which writes them anew; nothing was changed",
        plan.to, plan.name)};
  }
  if (!found.listed_in_target && goal == Goal::advance) {
    throw Refusal{fmt::format(
        "plan '{1}' is not among the unfinished plans of the store '{0}' (lost there, or its "
        "withdrawal was broken off): programs that know '{0}' alone are not kept out; run `dlock "
        "migrate start {1}`, which writes it anew, or `dlock migrate rollback {1} --all "
        "--withdraw`",
        plan.to, plan.name)};
  }
}

void MoveAdmin::require_governed(const Plan& plan) const {
  for (const auto& match : session_.patterns()) {
    const bool has =
        std::any_of(plan.patterns.begin(), plan.patterns.end(),
                    [&](const std::string& pattern) { return pattern_covers(pattern, match); });
    if (has) continue;
    throw Refusal{fmt::format(
        "plan '{0}' was started for '{1}', and a route of this configuration has it for '{2}': "
        "give those locks a plan of their own, or withdraw this one and start it anew",
        plan.name, fmt::join(plan.patterns, "' and '"), match)};
  }
}

Ledger::Found MoveAdmin::started(bool ask_target) {
  auto found = find(ask_target);
  if (found.failure.error) fail(found.failure);
  require_started(found);
  if (found.plan->from != session_.from() || found.plan->to != session_.to()) {
    throw Refusal{fmt::format(
        "plan '{}' was started from '{}' to '{}', but this configuration says "
        "from '{}' to '{}'",
        session_.plan(), found.plan->from, found.plan->to, session_.from(), session_.to())};
  }
  return found;
}

PlanCoordinator::Report MoveAdmin::drive(const StepRequest& request, const Plan& plan) {
  const auto coordinator = std::make_shared<std::shared_ptr<PlanCoordinator>>();
  return session_.run<PlanCoordinator::Report>(
      [&, coordinator](Stores stores) {
        PlanCoordinator::Options options;
        options.deadline = deadline_after(request.wait, stores.from->env());
        options.target_gone = request.target_gone;
        options.withdraw = request.withdraw;
        options.strangers_gone = request.strangers_gone;
        *coordinator = std::make_shared<PlanCoordinator>(stores.from, stores.to, plan, options);
        return request.all ? (*coordinator)->drive_all(request.goal)
                           : (*coordinator)->take(request.goal, request.names);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

StepsReport MoveAdmin::step(const StepRequest& request) {
  // With --target-gone the target is not asked.
  const auto found = started(!request.target_gone);
  if (!request.target_gone) require_noted_target(found, request.goal);
  if (request.goal != Goal::rollback) require_governed(*found.plan);
  const auto goal = request.goal;
  StepsReport report;
  report.plan = *found.plan;
  const auto& plan = report.plan;
  if (!request.all && goal == Goal::finish) {
    throw Misuse{fmt::format("plan '{}' is finished as a whole; write --all", plan.name)};
  }
  require_names(request, plan);
  auto driven = drive(request, plan);
  report.steps = std::move(driven.steps);
  report.strangers = std::move(driven.strangers);
  if (driven.refusal) report.steps.push_back(std::move(*driven.refusal));
  const bool done = verdict_on(report.steps) == Verdict::done;
  report.gate = read_gate(session_, plan).gate;
  // The command that made the gate final may have died before it wrote the certificate.
  if (done && driven.finished && goal == Goal::finish && report.gate) {
    auto home = plan;
    home.floor = report.gate->floor;
    demand([&](Ledger& ledger) { return ledger.certify(home); });
  }
  report.finished = done && driven.finished && (found.finished || goal == Goal::finish);
  if (done && driven.withdrawn) {
    demand([&](Ledger& ledger) { return ledger.withdraw(plan); });
    report.withdrawn = true;
  }
  return report;
}

}  // namespace dlock::core::migration
