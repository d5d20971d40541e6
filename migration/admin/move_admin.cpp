// SPDX-License-Identifier: Apache-2.0
#include "migration/admin/move_admin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "migration/admin/session.hpp"

namespace dlock::core::migration {
namespace {

using Stores = Session::Stores;

/// At what is under way.
constexpr int kMostLooks = 5;

std::string plural(std::size_t count, std::string word) { return count == 1 ? word : word + "s"; }

bool has_alarm(const PlanStatus& report) {
  return std::any_of(report.names.begin(), report.names.end(),
                     [](const NameStatus& name) { return !name.alarms.empty(); });
}

/// Returns the plan's status, with the names that the stores show now.
PlanStatus look(Session& session, const Ledger::Found& found) {
  return session.run<PlanStatus>([&](Stores stores) -> asio::awaitable<PlanStatus> {
    auto report = co_await survey(stores.from, stores.to, *found.plan);
    co_return report;
  });
}

}  // namespace

/// Adds an objection for each route before the plan's that matches a lock of the plan. This
/// configuration would lock it elsewhere.
void MoveAdmin::object_to_routes_before(const Plan& plan,
                                        std::vector<std::string>& objections) const {
  const auto& routes = session_.routes().all();
  for (auto route = routes.begin(); route != routes.end(); ++route) {
    if (!route->migrate || route->migrate->plan != plan.name) continue;
    for (auto before = routes.begin(); before != route; ++before) {
      if (before->migrate && before->migrate->plan == plan.name) continue;
      if (!patterns_meet(before->match, route->match)) continue;
      objections.push_back(fmt::format(
          "{}: the route of '{}' comes before that of '{}' and takes names of it, so the plan "
          "would "
          "not govern all of them; narrow the plan's route, or give the other the plan as well",
          before->origin.text(), before->match, route->match));
    }
  }
}

void MoveAdmin::look_at_names(PlanReport& report) {
  auto seen = session_.run<Governed>(
      [&](Stores stores) { return look_at_source(stores.from, report.plan); });
  if (seen.failure.error) fail(seen.failure);
  report.names = std::move(seen.names);
  report.strangers = std::move(seen.strangers);
  auto taken = session_.run<Result<std::vector<std::string>>>(
      [&](Stores stores) { return taken_places(stores.to, stores.from->name(), report.names); });
  if (!taken.value) fail(taken.failure);
  for (auto& one : *taken.value) report.objections.push_back(std::move(one));
}

PlanReport MoveAdmin::make(const PlanRequest& request) {
  const auto ends = session_.run<Result<std::vector<End>>>([](Stores stores) {
    return look_at_ends({stores.from, stores.to});
  });
  if (!ends.value) fail(ends.failure);
  const auto& from = ends.value->at(0);
  const auto& to = ends.value->at(1);
  PlanReport report;
  report.objections = objections(from, to);
  if (!keeps_records(from.capabilities) || !from.capabilities.can_gate) {
    const auto gate = keeps_records(to.capabilities) ? to.name : std::string("STORE");
    report.objections.push_back(fmt::format(
        "locks leave such a store under a gate that another store keeps: write `{}`{}",
        route_line(session_.patterns().front(), from.name, to.name, session_.plan(), gate),
        gate == to.name ? "" : ", with a STORE that forgets nothing"));
  }
  auto& plan = report.plan;
  plan.name = session_.plan();
  plan.from = session_.from();
  plan.to = session_.to();
  describe_target(plan, to, request.max_lease);
  plan.patterns = sorted(session_.patterns());
  if (to_text(plan).size() > kLongestPlan) {
    report.objections.emplace_back("too many patterns for one plan; make several");
  }
  object_to_routes_before(plan, report.objections);
  if (from.capabilities.can_gate) look_at_names(report);
  return report;
}

/// Adds the objections of the ledger, which knows the other plans.
void MoveAdmin::object_to_plans(PlanReport& report) {
  const auto objection =
      with_ledger([plan = report.plan](Ledger& ledger) { return ledger.objection(plan); });
  if (objection.error == errc::config_unsafe) {
    report.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
}

PlanReport MoveAdmin::plan(const PlanRequest& request) {
  auto report = make(request);
  object_to_plans(report);
  return report;
}

PlanReport MoveAdmin::start(const StartRequest& request) {
  // A repeated start writes the notes that are missing.
  auto found = find(false);
  if (found.failure.error) fail(found.failure);
  PlanReport report;
  if (found.plan && found.listed) {
    require_governed(*found.plan);
    report.plan = *found.plan;
  } else {
    report = make(request.plan);
    // With with_strangers it would be refused for that.
    object_to_plans(report);
    report.plan.id = session_.run<std::string>([](Stores stores) -> asio::awaitable<std::string> {
      co_return fmt::format("{:016x}", stores.from->env().random());
    });
  }
  if (report.objections.empty() && !report.strangers.empty() && !request.with_strangers) {
    report.objections.push_back(fmt::format(
        "{} {} in '{}' lock{} without the plan's route (they are named below): give them the "
        "route first, or say --yes: they are stopped lock by lock as those move, and have to be "
        "gone before `finish`",
        report.strangers.size(), plural(report.strangers.size(), "program"), session_.from(),
        report.strangers.size() == 1 ? "s" : ""));
  }
  if (report.objections.empty()) {
    demand([plan = report.plan](Ledger& ledger) { return ledger.publish(plan); });
    report.started = true;
  }
  return report;
}

PlanStatus MoveAdmin::status() {
  auto found = find(true);
  // The report has an alarm for a target that is unreachable.
  if (found.failure.error) found = find(false);
  if (found.failure.error) fail(found.failure);
  require_started(found);
  PlanStatus report;
  // A step of another command that is in progress can look like an alarm: the survey is repeated.
  for (int looks = 0; looks < kMostLooks; ++looks) {
    report = look(session_, found);
    if (!has_alarm(report)) break;
  }
  report.finished = found.finished;
  report.next = next_step(report);
  return report;
}

}  // namespace dlock::core::migration
