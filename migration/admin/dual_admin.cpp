// SPDX-License-Identifier: Apache-2.0
#include "migration/admin/dual_admin.hpp"

#include <fmt/format.h>

#include <utility>

#include "dlock/spi/name.hpp"
#include "migration/admin/session.hpp"

namespace dlock::core::migration {
namespace {

asio::awaitable<Result<DualStores>> resolve(Session::Stores stores) {
  Result<DualStores> result;
  DualStores dual;
  dual.from = stores.from;
  dual.to = stores.to;
  dual.window = stores.window;
  if (!dual.window) {
    auto end = co_await durable_end(stores.from, stores.to);
    if (!end.value) {
      result.failure = std::move(end.failure);
      co_return result;
    }
    dual.window = std::move(*end.value);
  }
  result.value = std::move(dual);
  co_return result;
}

}  // namespace

const std::string& DualAdmin::window() const noexcept { return session_.window(); }

const DualStores& DualAdmin::stores() {
  if (!stores_) {
    auto resolved = session_.run<Result<DualStores>>(resolve);
    if (!resolved.value) fail(resolved.failure);
    stores_ = std::move(*resolved.value);
  }
  return *stores_;
}

template <class T>
T DualAdmin::run(std::function<asio::awaitable<T>(DualStores)> work, std::function<void()> stop) {
  const auto& all = stores();
  return session_.run<T>([&](const Session::Stores&) { return work(all); }, std::move(stop));
}

/// Whatever the route matches takes part; names are those that are looked at, where a store cannot
/// list its locks.
void DualAdmin::name_locks(DualPlanReport& report, const std::vector<std::string>& names,
                           const std::vector<End>& ends) const {
  auto& plan = report.plan;
  for (const auto& one : session_.patterns()) {
    (is_pattern(one) ? plan.patterns : plan.names).push_back(one);
  }
  for (const auto& one : names) {
    const auto wrong = name_error(one);
    if (!wrong.empty()) throw Refusal{fmt::format("'{}': {}", one, wrong)};
    if (is_pattern(one)) {
      throw Refusal{
          fmt::format("'{}': in mode dual all locks that the route matches take part; "
                      "give exact names only, of locks that a store cannot list",
                      one)};
    }
    plan.names.push_back(one);
  }
  plan.names = sorted(std::move(plan.names));
  plan.patterns = sorted(std::move(plan.patterns));
  for (const auto& name : plan.names) {
    const auto* route = session_.routes().find(name);
    if (route != nullptr && route->migrate && route->migrate->plan == plan.name) continue;
    throw Refusal{
        fmt::format("'{}' is not routed by plan '{}' in this configuration; write `{}` "
                    "below `locks:`",
                    name, plan.name, route_line(name, plan, 0))};
  }
  for (const auto& end : ends) {
    if (end.capabilities.can_list || plan.patterns.empty()) continue;
    report.remarks.push_back(
        fmt::format("'{}' cannot list its locks: programs without the plan's route are seen there "
                    "on locks that "
                    "are named alone: dlock migrate start {} NAME...",
                    end.name, plan.name));
  }
}

DualPlanReport DualAdmin::make(const PlanRequest& request) {
  auto looked = run<Result<std::vector<End>>>([](DualStores all) {
    return look_at_ends({all.from, all.to, all.window});
  });
  if (!looked.value) fail(looked.failure);
  auto& ends = *looked.value;
  const End window = std::move(ends.back());
  ends.pop_back();
  const auto& from = ends.at(0);
  const auto& to = ends.at(1);
  DualPlanReport report;
  report.objections = dual_objections(from, to, window);
  auto& plan = report.plan;
  plan.name = session_.plan();
  plan.from = from.name;
  plan.to = to.name;
  plan.window = window.name;
  describe_dual(plan, from, to, request.max_lease, request.registration);
  name_locks(report, request.names, ends);
  if (to_text(plan).size() > kLongestPlan) {
    report.objections.emplace_back("too many names for one plan; write patterns, or make several");
  }
  auto sealed = run<Result<std::vector<std::string>>>(
      [&](DualStores all) { return sealed_places(std::move(all), plan.names); });
  if (!sealed.value) fail(sealed.failure);
  for (auto& one : *sealed.value) report.objections.push_back(std::move(one));
  return report;
}

DualLedger::Found DualAdmin::find() {
  auto found = run<DualLedger::Found>(
      [plan = session_.plan()](DualStores all) -> asio::awaitable<DualLedger::Found> {
        DualLedger ledger(std::move(all));
        auto answer = co_await ledger.find(plan);
        co_return answer;
      });
  if (found.failure.error) fail(found.failure);
  if (found.plan && found.plan->mode != MigrateMode::dual) {
    throw Refusal{
        fmt::format("plan '{0}' was started in mode move; finish or withdraw it with the "
                    "route that it was started with, or give this one another name",
                    session_.plan())};
  }
  return found;
}

void DualAdmin::require_started(const DualLedger::Found& found) const {
  const auto& plan = session_.plan();
  if (!found.plan) {
    throw Refusal{fmt::format("plan '{0}' was not started; run `dlock migrate start {0}`", plan)};
  }
  if (!found.started) throw Refusal{start_broken_off(plan)};
}

DualLedger::Found DualAdmin::started() {
  auto found = find();
  require_started(found);
  if (found.plan->from != session_.from() || found.plan->to != session_.to()) {
    throw Refusal{fmt::format(
        "plan '{}' was started from '{}' to '{}', but this configuration "
        "says from '{}' to '{}'",
        session_.plan(), found.plan->from, found.plan->to, session_.from(), session_.to())};
  }
  return found;
}

DualReport DualAdmin::take(const Plan& plan, DualCoordinator::Options options,
                           std::chrono::milliseconds wait, Work work) {
  const auto coordinator = std::make_shared<std::shared_ptr<DualCoordinator>>();
  options.drain = true;
  options.on_progress = [&session = session_](const std::string& text) { session.tell(text); };
  return run<DualReport>(
      [&, coordinator](DualStores all) {
        options.deadline = deadline_after(wait, all.from->env());
        *coordinator = std::make_shared<DualCoordinator>(std::move(all), plan, std::move(options));
        return work(*coordinator);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

Failure DualAdmin::with_ledger(std::function<asio::awaitable<Failure>(DualLedger&)> work) {
  return run<Failure>([&](DualStores all) -> asio::awaitable<Failure> {
    DualLedger ledger(std::move(all));
    auto failure = co_await work(ledger);
    co_return failure;
  });
}

DualPlanReport DualAdmin::plan(const PlanRequest& request) {
  auto report = make(request);
  // What `start` would be refused for.
  const auto objection =
      with_ledger([&](DualLedger& ledger) { return ledger.objection(report.plan); });
  if (objection.error == errc::config_unsafe) {
    report.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
  return report;
}

DualAdmin::Start DualAdmin::start(const StartRequest& request) {
  // Again, with nothing said about locks: what is missing of it is written anew.
  const auto found = find();
  Start start;
  auto& step = start.step;
  if (found.plan && found.started && request.plan.names.empty()) {
    step.plan = *found.plan;
  } else {
    auto made = make(request.plan);
    if (!made.objections.empty()) {
      start.refused = std::move(made);
      return start;
    }
    for (const auto& remark : made.remarks) session_.tell("note: " + remark);
    step.plan = std::move(made.plan);
    step.plan.id = run<std::string>([](DualStores all) -> asio::awaitable<std::string> {
      co_return fmt::format("{:016x}", all.window->env().random());
    });
  }
  if (request.at && found.window && found.window->is_open()) {
    throw Refusal{
        fmt::format("--at: the window is there and admits {}; move it with `dlock migrate "
                    "advance {}` or `rollback`",
                    phases_text(found.window->lo, found.window->hi), session_.plan())};
  }
  step.report = take(step.plan, {}, request.wait,
                     [at = request.at](const std::shared_ptr<DualCoordinator>& coordinator) {
                       return coordinator->start(at);
                     });
  return start;
}

DualStatus DualAdmin::status() {
  const auto found = find();
  require_started(found);
  return run<DualStatus>([&](DualStores all) { return dual_survey(std::move(all), *found.plan); });
}

DualStepReport DualAdmin::step(const StepRequest& request) {
  const auto found = started();
  DualStepReport step;
  step.plan = *found.plan;
  DualCoordinator::Options options;
  options.legacy_gone = request.legacy_gone;
  step.report = take(step.plan, options, request.wait,
                     [goal = request.goal](const std::shared_ptr<DualCoordinator>& coordinator) {
                       return coordinator->take(goal);
                     });
  auto& report = step.report;
  const bool done = report.verdict == Verdict::done;
  step.finished = done && report.window && report.window->finished;
  if (!done || !request.withdraw) return step;
  if (!report.window || report.window->hi > 0) {
    report.verdict = Verdict::waiting;
    report.text += "; the plan is withdrawn when phase 0 alone is admitted: go on";
    return step;
  }
  auto gone = take(
      step.plan, options, request.wait,
      [](const std::shared_ptr<DualCoordinator>& coordinator) { return coordinator->withdraw(); });
  step.withdrawn = gone.verdict == Verdict::done;
  if (!step.withdrawn) report = std::move(gone);
  return step;
}

}  // namespace dlock::core::migration
