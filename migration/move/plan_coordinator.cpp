// SPDX-License-Identifier: Apache-2.0
#include "migration/move/plan_coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dlock/spi/error.hpp"
#include "migration/eligibility.hpp"
#include "migration/ledger.hpp"
#include "migration/move/drive_all.hpp"
#include "migration/policy/target_guard.hpp"

namespace dlock::core::migration {
namespace {

/// At a gate that others turn meanwhile.
constexpr int kMostTurnings = 20;

void add_strangers(const Plan& plan, const LockStatus& status, std::vector<Stranger>& strangers) {
  const auto mark = participant_mark(plan.name);
  if (status.held && status.owner && !status.owner->id.starts_with(mark)) {
    strangers.push_back({plan.from, status.name, *status.owner, false});
  }
  for (const auto& owner : status.waiting) {
    if (!owner.id.starts_with(mark)) strangers.push_back({plan.from, status.name, owner, true});
  }
}

Failure with_store(const Store& store, Failure failure) {
  const auto text = failure.text.empty() ? failure.error.message() : failure.text;
  return {failure.error, fmt::format("the store '{}': {}", store.name(), text)};
}

bool all_done(const std::vector<StepReport>& steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [](const StepReport& step) { return step.verdict == Verdict::done; });
}

}  // namespace

// Claims first: a claim that is sealed meanwhile is in the second list, and that one sees what the
// first has seen.
asio::awaitable<Governed> look_at_source(std::shared_ptr<Store> source, Plan plan) {
  Governed governed;
  governed.failure = co_await source->connected();
  if (governed.failure.error) {
    governed.failure = with_store(*source, std::move(governed.failure));
    co_return governed;
  }
  auto& backend = source->backend();
  const auto prefix = plan.prefix();
  const auto claimed =
      co_await backend.migration().claimed_names(prefix, source->env().now() + kListing);
  if (!claimed.value) {
    governed.failure = with_store(*source, claimed.failure);
    co_return governed;
  }
  const auto listed = co_await backend.list(prefix, source->env().now() + kListing);
  if (!listed.value) {
    governed.failure = with_store(*source, listed.failure);
    co_return governed;
  }
  for (const auto& name : *claimed.value) {
    if (plan.has(name)) governed.names.push_back(name);
  }
  for (const auto& status : *listed.value) {
    if (!plan.has(status.name)) continue;
    governed.names.push_back(status.name);
    if (status.sealed) governed.sealed.push_back(status.name);
    add_strangers(plan, status, governed.strangers);
  }
  governed.names = sorted(std::move(governed.names));
  governed.sealed = sorted(std::move(governed.sealed));
  co_return governed;
}

PlanCoordinator::PlanCoordinator(std::shared_ptr<Store> source, std::shared_ptr<Store> target,
                                 Plan plan, Options options)
    : source_(std::move(source)),
      target_(std::move(target)),
      plan_(std::move(plan)),
      options_(options),
      note_(source_, plan_.name),
      belief_(std::make_shared<GateBelief>(plan_.name)),
      by_name_(coordinator(false)),
      for_all_(coordinator(true)) {}

std::shared_ptr<Coordinator> PlanCoordinator::coordinator(bool for_all) const {
  Coordinator::Options options;
  options.deadline = options_.deadline;
  options.target_gone = options_.target_gone;
  options.gate = belief_;
  options.is_for_all = for_all;
  return std::make_shared<Coordinator>(source_, target_, plan_, options);
}

StepReport PlanCoordinator::unreachable(const Failure& failure) {
  const bool refused = portable(failure.error) == errc::protocol;
  return report_of({}, refused ? Verdict::refused : Verdict::unreachable, failure.text);
}

// Who is sent to a target that is away, or whose record could be lost, has no lock at all, or two.
asio::awaitable<std::optional<StepReport>> PlanCoordinator::objection() {
  std::optional<StepReport> refusal;
  auto failure = co_await target_->connected();
  if (failure.error) {
    refusal = unreachable(with_store(*target_, std::move(failure)));
    co_return refusal;
  }
  const auto objected = objections({source_->name(), source_->backend().capabilities(), {}},
                                   {target_->name(), target_->backend().capabilities(), {}});
  if (!objected.empty()) refusal = refuse(fmt::format("{}", fmt::join(objected, "; ")));
  co_return refusal;
}

asio::awaitable<std::optional<StepReport>> PlanCoordinator::look() {
  std::optional<StepReport> refusal;
  seen_ = co_await note_.read();
  std::string why;
  if (seen_.failure.error) {
    refusal = unreachable(seen_.failure);
  } else if (!seen_.gate || seen_.gate->plan_id != plan_.id) {
    refusal = refuse(start_broken_off(plan_.name));
  } else if (!belief_->learn(seen_.text, why)) {
    refusal = refuse(why);
  }
  co_return refusal;
}

std::optional<GateState> PlanCoordinator::next(Goal goal, GateState state) const {
  if (goal == Goal::rollback) {
    if (state == GateState::turned) return GateState::open;
    if (state == GateState::open && options_.withdraw) return GateState::ended;
  } else if (state == GateState::open) {
    return GateState::turned;
  }
  return std::nullopt;
}

asio::awaitable<std::optional<StepReport>> PlanCoordinator::turn(Goal goal) {
  auto refusal = co_await look();
  if (!refusal && goal != Goal::rollback && seen_.gate->state == GateState::open) {
    refusal = co_await objection();
  }
  for (int i = 0; i < kMostTurnings && !refusal; ++i) {
    const auto& gate = *seen_.gate;
    const auto to = next(goal, gate.state);
    if (!to) co_return refusal;
    auto turned = turned_to(gate, *to, source_->env().wall_clock_ms());
    seen_ = co_await note_.turn(seen_, turned);
    turned_ = turned_ || (seen_.gate && *seen_.gate == turned);
    std::string why;
    if (seen_.failure.error) {
      refusal = unreachable(seen_.failure);
    } else if (!seen_.gate || !belief_->learn(seen_.text, why)) {
      refusal = refuse(start_broken_off(plan_.name));
    }
  }
  if (!refusal) refusal = refuse("others turn the plan's gate all the time");
  co_return refusal;
}

asio::awaitable<PlanCoordinator::Report> PlanCoordinator::take(Goal goal,
                                                               std::vector<std::string> names) {
  const auto self = shared_from_this();
  Report report;
  report.refusal = co_await look();
  if (report.refusal) co_return report;
  report.steps = co_await migration::drive_all(by_name_, source_->env(), goal, std::move(names));
  co_return report;
}

asio::awaitable<PlanCoordinator::Report> PlanCoordinator::drive_all(Goal goal) {
  const auto self = shared_from_this();
  Report report;
  report.refusal = co_await turn(goal);
  report.turned = turned_;
  if (report.refusal) co_return report;
  const auto state = seen_.gate->state;
  if (state == GateState::final_) {
    report.finished = true;
    if (goal == Goal::rollback)
      report.refusal = refuse(under_gate(goal, {}, seen_.gate, plan_, true).why);
    co_return report;
  }
  if (state == GateState::ended && goal != Goal::rollback) {
    report.refusal = refuse(under_gate(goal, {}, seen_.gate, plan_, true).why);
    co_return report;
  }
  if (goal == Goal::finish) {
    report = co_await finish();
    co_return report;
  }
  report = co_await drain(goal);
  if (goal == Goal::rollback && options_.withdraw)
    report = co_await end_withdrawal(std::move(report));
  co_return report;
}

asio::awaitable<PlanCoordinator::Report> PlanCoordinator::drain(Goal goal) {
  Report report;
  report.turned = turned_;
  auto found = co_await look_at_source(source_, plan_);
  if (found.failure.error) {
    report.refusal = unreachable(found.failure);
    co_return report;
  }
  auto names = goal == Goal::rollback ? std::move(found.sealed) : std::move(found.names);
  const bool is_waited_for = !found.strangers.empty();
  report.steps = co_await migration::drive_all(for_all_, source_->env(), goal, std::move(names));
  // Those that are there still.
  if (is_waited_for) found = co_await look_at_source(source_, plan_);
  if (!found.failure.error) report.strangers = std::move(found.strangers);
  co_return report;
}

asio::awaitable<PlanCoordinator::Report> PlanCoordinator::finish() {
  const auto turned = seen_;
  auto report = co_await drain(Goal::advance);
  if (report.refusal || !all_done(report.steps)) co_return report;
  if (!report.strangers.empty() && !options_.strangers_gone) {
    report.refusal = refuse(fmt::format(
        "{} program{} in '{}' without taking part in plan '{}': after `finish` nothing keeps such "
        "a "
        "one from a lock that somebody holds in '{}'; give them the route, or stop them, and say "
        "--yes",
        report.strangers.size(), report.strangers.size() == 1 ? " locks" : "s lock", plan_.from,
        plan_.name, plan_.to));
    co_return report;
  }
  report.refusal = co_await make_final(turned);
  report.finished = !report.refusal;
  co_return report;
}

asio::awaitable<std::optional<StepReport>> PlanCoordinator::make_final(GateNote::Look turned) {
  std::optional<StepReport> refusal;
  const auto deadline = source_->env().now() + source_->request_timeout();
  const auto highest = co_await source_->backend().migration().highest_token(deadline);
  if (!highest.value) {
    refusal = failure_report({}, false, source_->name(), highest.failure.error, highest.failure);
    co_return refusal;
  }
  auto final_gate = turned_to(*turned.gate, GateState::final_, source_->env().wall_clock_ms());
  // What an earlier plan has brought here may be unused since, and its records in the target, which
  // this floor opens, are as young as that plan's floor.
  final_gate.floor = std::max(*highest.value, TargetGuard::of(*source_).highest_floor());
  seen_ = co_await note_.turn(turned, final_gate);
  if (seen_.failure.error) {
    refusal = unreachable(seen_.failure);
  } else if (!seen_.gate || seen_.gate->state != GateState::final_) {
    refusal = report_of({}, Verdict::waiting,
                        fmt::format("another command has turned the gate of plan '{}' meanwhile; "
                                    "run it again",
                                    plan_.name));
  }
  turned_ = turned_ || !refusal;
  co_return refusal;
}

// Nothing is sealed any more; what was sealed before is in the list that is made now, by a command
// that was stopped before its last answer.
asio::awaitable<PlanCoordinator::Report> PlanCoordinator::end_withdrawal(Report report) {
  if (report.refusal || !all_done(report.steps) || !belief_->is(GateState::ended)) co_return report;
  const auto again = co_await drain(Goal::rollback);
  if (again.refusal) {
    report.refusal = again.refusal;
  } else if (!all_done(again.steps)) {
    report.steps = again.steps;
  } else {
    report.withdrawn = true;
  }
  co_return report;
}

}  // namespace dlock::core::migration
