// SPDX-License-Identifier: Apache-2.0
//
// dlock migrate plan|start|status|advance|rollback|finish: each may be repeated at any time, by
// anybody; what there is to remember is in the stores.
#include <fmt/format.h>

#include <algorithm>

#include "cli/output/exit_codes.hpp"
#include "cli/output/migrate_output.hpp"
#include "cli/output/output.hpp"
#include "cli/verbs/commands.hpp"
#include "cli/verbs/migrate/migrate_dual.hpp"
#include "cli/verbs/migrate/migrate_pattern.hpp"
#include "cli/verbs/migrate/migrate_plan.hpp"
#include "cli/verbs/migrate/migrate_refusal.hpp"
#include "cli/verbs/migrate/migrate_session.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/name.hpp"
#include "migration/eligibility.hpp"
#include "migration/ledger.hpp"
#include "migration/move/drive_all.hpp"
#include "migration/move/survey.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using Stores = MigrateSession::Stores;
using std::chrono::milliseconds;

/// At what is under way.
constexpr int kMostLooks = 5;

bool is_pattern(const std::string& name) { return name.find('*') != std::string::npos; }

struct Ends {
  Failure failure;
  moves::End from;
  moves::End to;
};

asio::awaitable<Ends> look_at_ends(Stores stores) {
  Ends ends;
  for (auto* const end : {&ends.from, &ends.to}) {
    const auto& store = end == &ends.from ? stores.from : stores.to;
    ends.failure = co_await store->connected();
    if (ends.failure.error) {
      ends.failure.text = fmt::format("the store '{}': {}", store->name(), ends.failure.text);
      co_return ends;
    }
    end->name = store->name();
    end->capabilities = store->backend().capabilities();
    end->lease = store->setup().settings.lease;
  }
  co_return ends;
}

/// A pattern that only the plan's own routes reach is the plan's; what a route before them takes is
/// locked elsewhere by this very configuration.
void object_to_routes_before(const MigrateSession& session, const moves::Plan& plan,
                             std::vector<std::string>& objections) {
  const auto& routes = session.engine().routes().all();
  for (auto route = routes.begin(); route != routes.end(); ++route) {
    if (!route->migrate || route->migrate->plan != plan.name) continue;
    for (auto before = routes.begin(); before != route; ++before) {
      if (before->migrate && before->migrate->plan == plan.name) continue;
      if (!core::patterns_meet(before->match, route->match)) continue;
      objections.push_back(fmt::format(
          "{}: the route of '{}' comes before that of '{}' and takes names of it, so the plan "
          "would "
          "not govern all of them; narrow the plan's route, or give the other the plan as well",
          before->origin.text(), before->match, route->match));
    }
  }
}

moves::Governed look_at_source(MigrateSession& session, const moves::Plan& plan) {
  auto seen = session.run<moves::Governed>(
      [&](Stores stores) { return moves::look_at_source(stores.from, plan); });
  if (seen.failure.error) fail(seen.failure);
  return seen;
}

std::vector<std::string> taken_places(MigrateSession& session, const PlanOutput& output) {
  auto taken = session.run<Result<std::vector<std::string>>>([&](Stores stores) {
    return moves::taken_places(stores.to, stores.from->name(), output.names);
  });
  if (!taken.value) fail(taken.failure);
  return std::move(*taken.value);
}

PlanOutput make_plan(MigrateSession& session, const Arguments& arguments) {
  if (!arguments.names.empty()) {
    throw Misuse{
        fmt::format("plan '{}' governs every lock that its route matches, those made later "
                    "too: leave the names out, or narrow the route's `match`",
                    arguments.plan)};
  }
  const auto ends = session.run<Ends>(look_at_ends);
  if (ends.failure.error) fail(ends.failure);
  PlanOutput output;
  output.objections = moves::objections(ends.from, ends.to);
  auto& plan = output.plan;
  plan.name = arguments.plan;
  plan.from = session.from();
  plan.to = session.to();
  moves::describe_target(plan, ends.to, arguments.max_lease);
  plan.patterns = moves::parse_list(moves::list_text(session.patterns()));
  if (to_text(plan).size() > moves::kLongestPlan) {
    output.objections.emplace_back("too many patterns for one plan; make several");
  }
  object_to_routes_before(session, plan, output.objections);
  if (!ends.from.capabilities.can_gate) return output;
  auto seen = look_at_source(session, plan);
  output.names = std::move(seen.names);
  output.strangers = std::move(seen.strangers);
  for (auto& taken : taken_places(session, output)) output.objections.push_back(std::move(taken));
  return output;
}

template <class Output>
void print(const Arguments& arguments, const Output& output) {
  print_line(arguments.json ? to_json(output) : to_text(output));
}

/// A plan of dlock 0.1 has exact names. What its route's pattern matches besides is nobody's: each
/// program locks it where its own route leads.
void warn_of_unlisted(const MigrateSession& session, const moves::Plan& plan, bool finished) {
  if (plan.has_gate()) return;
  std::vector<std::string> patterns;
  for (const auto& one : session.patterns()) {
    if (is_pattern(one)) patterns.push_back(fmt::format("'{}'", one));
  }
  if (patterns.empty()) return;
  const auto which = fmt::format("names of {} that plan '{}' does not list, those made later too, ",
                                 fmt::join(patterns, " and "), plan.name);
  complain(fmt::format(
      "warning: {}{}", which,
      finished ? fmt::format("are locked in '{0}' by programs with the route and in '{1}' by "
                             "programs with `store: {1}`: stop all of the former before the first "
                             "of the latter starts",
                             plan.from, plan.to)
               : fmt::format("stay in '{}': name each lock that has to move, idle ones too",
                             plan.from)));
}

/// What other plans have against it.
void object_to_plans(MigrateSession& session, PlanOutput& output) {
  const auto objection = with_ledger(
      session, [plan = output.plan](moves::Ledger& ledger) { return ledger.objection(plan); });
  if (objection.error == errc::config_unsafe) {
    output.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
}

int plan(MigrateSession& session, const Arguments& arguments) {
  auto output = make_plan(session, arguments);
  object_to_plans(session, output);
  print(arguments, output);
  return status(output.objections.empty() ? Exit::ok : Exit::migrate_refused);
}

std::string plural(std::size_t count, std::string word) { return count == 1 ? word : word + "s"; }

std::string fresh_id(Env& env) { return fmt::format("{:016x}", env.random()); }

int start(MigrateSession& session, const Arguments& arguments) {
  // Again, with nothing said about names: what is missing of it is written anew.
  auto found = find_plan(session, arguments.plan, false);
  if (found.failure.error) fail(found.failure);
  PlanOutput output;
  if (found.plan && found.listed && arguments.names.empty()) {
    require_governed(session, *found.plan);
    output.plan = *found.plan;
  } else {
    output = make_plan(session, arguments);
    // With --yes it would be refused for that.
    object_to_plans(session, output);
    output.plan.id = session.run<std::string>([](Stores stores) -> asio::awaitable<std::string> {
      co_return fresh_id(stores.from->env());
    });
  }
  if (output.objections.empty() && !output.strangers.empty() && !arguments.yes) {
    output.objections.push_back(fmt::format(
        "{} {} in '{}' lock{} without the plan's route (they are named below): give them the "
        "route first, or say --yes: they are stopped lock by lock as those move, and have to be "
        "gone before `finish`",
        output.strangers.size(), plural(output.strangers.size(), "program"), session.from(),
        output.strangers.size() == 1 ? "s" : ""));
  }
  if (output.objections.empty()) {
    const auto failure = with_ledger(
        session, [plan = output.plan](moves::Ledger& ledger) { return ledger.publish(plan); });
    if (failure.error) fail(failure);
    output.started = true;
  }
  print(arguments, output);
  warn_of_unlisted(session, output.plan, false);
  return status(output.started ? Exit::ok : Exit::migrate_refused);
}

bool has_alarm(const moves::PlanStatus& report) {
  return std::any_of(report.names.begin(), report.names.end(),
                     [](const moves::NameStatus& name) { return !name.alarms.empty(); });
}

/// Where it stands, with the names that are seen now of a plan that has patterns.
moves::PlanStatus survey(MigrateSession& session, const moves::Ledger::Found& found) {
  return session.run<moves::PlanStatus>([&](Stores stores) -> asio::awaitable<moves::PlanStatus> {
    auto report = co_await moves::survey(stores.from, stores.to, *found.plan, found.moved);
    co_return report;
  });
}

int show(MigrateSession& session, const Arguments& arguments) {
  auto found = find_plan(session, arguments.plan, true);
  // A target that is away is told of below, with everything else.
  if (found.failure.error) found = find_plan(session, arguments.plan, false);
  if (found.failure.error) fail(found.failure);
  require_started(found, arguments.plan);
  moves::PlanStatus report;
  for (int look = 0; look < kMostLooks; ++look) {
    report = survey(session, found);
    if (!has_alarm(report)) break;
    // What a command does meanwhile is no alarm: only what stands there still when it is looked at
    // again.
    if (found.plan->has_gate()) continue;
    auto again = find_plan(session, arguments.plan, true);
    if (again.failure.error || !again.plan || again.moved == found.moved) break;
    found = std::move(again);
  }
  report.finished = found.finished;
  report.next = moves::next_step(report);
  const auto now_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  print_line(arguments.json ? to_json(report, now_ms) : to_text(report, now_ms));
  if (report.finished) warn_of_unlisted(session, report.plan, true);
  return status(Exit::ok);
}

std::vector<std::string> chosen(const Arguments& arguments, const moves::Plan& plan) {
  if (arguments.all) return plan.names;
  for (const auto& name : arguments.names) {
    if (!plan.has(name)) throw Refusal{fmt::format("'{}' is not in plan '{}'", name, plan.name)};
  }
  return arguments.names;
}

std::vector<moves::StepReport> take(MigrateSession& session, const Arguments& arguments,
                                    const moves::Plan& plan, moves::Goal goal) {
  const auto coordinator = std::make_shared<std::shared_ptr<moves::Coordinator>>();
  const auto names = chosen(arguments, plan);
  return session.run<std::vector<moves::StepReport>>(
      [&, coordinator](Stores stores) {
        auto& env = stores.from->env();
        moves::Coordinator::Options options;
        options.deadline = deadline_of(arguments, env);
        options.target_gone = arguments.target_gone;
        *coordinator = std::make_shared<moves::Coordinator>(stores.from, stores.to, plan, options);
        return moves::drive_all(*coordinator, env, goal, names);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

bool all_in(MigrateSession& session, const moves::Plan& plan, moves::Goal goal) {
  return session.run<bool>([&](Stores stores) -> asio::awaitable<bool> {
    for (const auto& name : plan.names) {
      const auto deadline = stores.from->env().now() + stores.from->request_timeout();
      const auto answer = co_await stores.from->backend().migration().record(name, deadline);
      if (answer.status != RecordStatus::done) co_return false;
      std::optional<moves::Record> record;
      if (answer.found) record = moves::parse_record(*answer.found);
      if (answer.found && !record) co_return false;
      const bool is_final = record && record->state == moves::MoveState::final_;
      if (goal == moves::Goal::finish ? !is_final : record.has_value()) co_return false;
    }
    co_return true;
  });
}

/// For alarms; that it cannot be written is no failure of the step.
void remember(MigrateSession& session, const moves::Plan& plan,
              const std::vector<std::string>& sealed) {
  if (sealed.empty()) return;
  const auto failure = with_ledger(
      session, [&](moves::Ledger& ledger) { return ledger.note_moved(plan.name, sealed); });
  if (failure.error) complain("warning: " + failure.text);
}

std::vector<std::string> sealed_names(const std::vector<moves::StepReport>& steps) {
  std::vector<std::string> names;
  for (const auto& step : steps) {
    if (step.record) names.push_back(step.name);
  }
  return names;
}

int step(MigrateSession& session, const Arguments& arguments, moves::Goal goal) {
  if (!arguments.all && arguments.names.empty()) {
    throw Misuse{"say which locks: --all, or --name NAME"};
  }
  // A dead target is not asked.
  const auto found = started_plan(session, arguments.plan, !arguments.target_gone);
  if (!arguments.target_gone) require_noted_target(found, goal);
  if (goal != moves::Goal::rollback) require_governed(session, *found.plan);
  if (found.plan->has_gate()) return pattern_step(session, arguments, found, goal);
  if (found.finished && goal != moves::Goal::rollback) {
    // Whoever wrote the certificate may have died before the plan was out of the lists.
    if (goal == moves::Goal::finish) {
      const auto failure =
          with_ledger(session, [&](moves::Ledger& ledger) { return ledger.certify(*found.plan); });
      if (failure.error) fail(failure);
    }
    StepsOutput output;
    output.plan = *found.plan;
    output.finished = true;
    print(arguments, output);
    warn_of_unlisted(session, output.plan, true);
    return status(Exit::ok);
  }
  StepsOutput output;
  output.plan = *found.plan;
  output.steps = take(session, arguments, output.plan, goal);
  if (!arguments.target_gone) remember(session, output.plan, sealed_names(output.steps));
  const auto result = worst(output.steps);
  if (result == Exit::ok && goal == moves::Goal::finish && all_in(session, output.plan, goal)) {
    const auto failure =
        with_ledger(session, [&](moves::Ledger& ledger) { return ledger.certify(output.plan); });
    if (failure.error) fail(failure);
    output.finished = true;
  }
  if (result == Exit::ok && arguments.withdraw && all_in(session, output.plan, goal)) {
    const auto failure =
        with_ledger(session, [&](moves::Ledger& ledger) { return ledger.withdraw(output.plan); });
    if (failure.error) fail(failure);
    output.withdrawn = true;
  }
  print(arguments, output);
  if (output.finished) warn_of_unlisted(session, output.plan, true);
  return status(result);
}

void check_options(const Arguments& arguments) {
  const bool dual = arguments.mode == "dual" || !arguments.window_store.empty() ||
                    arguments.legacy_gone || arguments.at || arguments.registration;
  if (!dual) return;
  throw Misuse{
      fmt::format("the route of plan '{0}' says nothing of mode dual, and --mode dual, --window, "
                  "--registration, --legacy-gone and --at are of that; write `mode: dual, phase: "
                  "0` beside `plan: {0}`, or leave them out",
                  arguments.plan)};
}

int dispatch(const Arguments& arguments) {
  MigrateSession session(arguments);
  if (session.is_dual()) return migrate_dual(session, arguments);
  check_options(arguments);
  switch (arguments.verb) {
    case Verb::migrate_plan:
      return plan(session, arguments);
    case Verb::migrate_start:
      return start(session, arguments);
    case Verb::migrate_status:
      return show(session, arguments);
    case Verb::migrate_advance:
      return step(session, arguments, moves::Goal::advance);
    case Verb::migrate_rollback:
      return step(session, arguments, moves::Goal::rollback);
    case Verb::migrate_finish:
      return step(session, arguments, moves::Goal::finish);
    default:
      break;
  }
  return status(Exit::usage);
}

}  // namespace

int migrate(const Arguments& arguments) {
  try {
    return dispatch(arguments);
  } catch (const Refusal& refusal) {
    complain(refusal.why);
    return status(Exit::migrate_refused);
  } catch (const Misuse& misuse) {
    complain(misuse.why);
    return status(Exit::usage);
  } catch (const Interrupted& interrupted) {
    complain(fmt::format("stopped; what was done is done, run it again to go on"));
    return signal_status(interrupted.signal);
  }
}

}  // namespace dlock::cli
