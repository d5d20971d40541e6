// SPDX-License-Identifier: Apache-2.0
#include "migration/admin/leased_admin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "migration/admin/session.hpp"

namespace dlock::core::migration {
namespace {

LeasedStores leased(const Session::Stores& stores) { return {stores.from, stores.to, stores.gate}; }

}  // namespace

LeasedPlanReport LeasedAdmin::make(const PlanRequest& request) {
  const auto ends = session_.run<Result<std::vector<End>>>([](Session::Stores stores) {
    return look_at_ends({stores.from, stores.to, stores.gate});
  });
  if (!ends.value) fail(ends.failure);
  const auto& from = ends.value->at(0);
  const auto& to = ends.value->at(1);
  const auto& gate = ends.value->at(2);
  LeasedPlanReport report;
  report.objections = leased_objections(from, to, gate);
  auto& plan = report.plan;
  plan.name = session_.plan();
  plan.from = from.name;
  plan.to = to.name;
  plan.gate = gate.name;
  describe_target(plan, to, request.max_lease);
  plan.lease = request.gate_lease.value_or(kDefaultGateLease);
  plan.patterns = sorted(session_.patterns());
  if (to_text(plan).size() > kLongestPlan) {
    report.objections.emplace_back("too many patterns for one plan; make several");
  }
  const bool has_patterns = std::any_of(plan.patterns.begin(), plan.patterns.end(),
                                        [](const auto& one) { return is_pattern(one); });
  for (const auto* end : {&from, &to}) {
    if (end->capabilities.can_list || !has_patterns) continue;
    report.remarks.push_back(
        fmt::format("'{}' cannot list its locks: programs without the plan's route are seen there "
                    "only on locks that the route matches by their exact names",
                    end->name));
  }
  return report;
}

LeasedLedger::Found LeasedAdmin::find() {
  auto found = session_.run<LeasedLedger::Found>(
      [plan = session_.plan()](Session::Stores stores) -> asio::awaitable<LeasedLedger::Found> {
        LeasedLedger ledger(leased(stores));
        auto answer = co_await ledger.find(plan);
        co_return answer;
      });
  if (found.failure.error) fail(found.failure);
  if (found.plan && !found.plan->is_leased()) {
    throw Refusal{
        fmt::format("plan '{0}' was started without `gate`; finish or withdraw it with the route "
                    "that it was started with, or give this one another name",
                    session_.plan())};
  }
  return found;
}

LeasedLedger::Found LeasedAdmin::started() {
  auto found = find();
  const auto& plan = session_.plan();
  if (!found.plan) {
    throw Refusal{fmt::format("plan '{0}' was not started; run `dlock migrate start {0}`", plan)};
  }
  if (found.gate ? !found.gate->has_begun() : !found.listed) throw Refusal{start_broken_off(plan)};
  if (found.plan->from != session_.from() || found.plan->to != session_.to()) {
    throw Refusal{fmt::format(
        "plan '{}' was started from '{}' to '{}', but this configuration says from '{}' to '{}'",
        plan, found.plan->from, found.plan->to, session_.from(), session_.to())};
  }
  return found;
}

LeasedReport LeasedAdmin::drive(const Plan& plan, LeasedCoordinator::Options options,
                                std::chrono::milliseconds wait, Work work) {
  const auto coordinator = std::make_shared<std::shared_ptr<LeasedCoordinator>>();
  options.on_progress = [&session = session_](const std::string& text) { session.tell(text); };
  return session_.run<LeasedReport>(
      [&, coordinator](Session::Stores stores) {
        options.deadline = deadline_after(wait, stores.from->env());
        *coordinator =
            std::make_shared<LeasedCoordinator>(leased(stores), plan, std::move(options));
        return work(**coordinator);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

LeasedPlanReport LeasedAdmin::plan(const PlanRequest& request) {
  auto report = make(request);
  const auto objection = session_.run<Failure>(
      [plan = report.plan](Session::Stores stores) -> asio::awaitable<Failure> {
        LeasedLedger ledger(leased(stores));
        auto failure = co_await ledger.objection(plan);
        co_return failure;
      });
  if (objection.error == errc::config_unsafe) {
    report.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
  return report;
}

LeasedAdmin::Start LeasedAdmin::start(const StartRequest& request) {
  const auto found = find();
  Start start;
  auto& step = start.step;
  const bool is_started = found.plan && (found.listed || (found.gate && found.gate->has_begun()));
  if (is_started) {
    step.plan = *found.plan;
  } else {
    auto made = plan(request.plan);
    if (!made.objections.empty()) {
      start.refused = std::move(made);
      return start;
    }
    for (const auto& remark : made.remarks) session_.tell("note: " + remark);
    step.plan = std::move(made.plan);
    step.plan.id =
        session_.run<std::string>([](Session::Stores stores) -> asio::awaitable<std::string> {
          co_return fmt::format("{:016x}", stores.gate->env().random());
        });
  }
  step.report = drive(step.plan, {}, request.wait,
                      [at = request.at](LeasedCoordinator& by) { return by.start(at); });
  return start;
}

LeasedStatus LeasedAdmin::status() {
  const auto found = started();
  return session_.run<LeasedStatus>(
      [&](Session::Stores stores) { return leased_survey(leased(stores), *found.plan); });
}

LeasedStepReport LeasedAdmin::step(const StepRequest& request) {
  const auto found = started();
  LeasedStepReport step;
  step.plan = *found.plan;
  LeasedCoordinator::Options options;
  options.legacy_gone = request.legacy_gone;
  options.withdraw = request.withdraw;
  step.report = drive(step.plan, std::move(options), request.wait,
                      [goal = request.goal](LeasedCoordinator& by) { return by.take(goal); });
  const auto& report = step.report;
  const bool is_done = report.verdict == Verdict::done && report.gate;
  step.finished = is_done && report.gate->state == LeasedState::final_;
  step.withdrawn = is_done && report.gate->state == LeasedState::ended;
  return step;
}

}  // namespace dlock::core::migration
