// SPDX-License-Identifier: Apache-2.0
//
// dlock migrate plan|start|status|advance|rollback|finish: each may be repeated at any time, by
// anybody; what there is to remember is in the stores.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/migrate_dual.hpp"
#include "cli/migrate_output.hpp"
#include "cli/migrate_refusal.hpp"
#include "cli/migrate_session.hpp"
#include "cli/output.hpp"
#include "core/error.hpp"
#include "core/migration/ends.hpp"
#include "core/migration/ledger.hpp"
#include "core/migration/survey.hpp"
#include "core/migration/take_all.hpp"
#include "core/name.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using Stores = MigrateSession::Stores;
using std::chrono::milliseconds;

constexpr milliseconds kDefaultWait{30'000};
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

asio::awaitable<Result<std::vector<LockStatus>>> list_source(Stores stores) {
  Result<std::vector<LockStatus>> result;
  result.failure = co_await stores.from->connected();
  if (result.failure.error) co_return result;
  const auto deadline = stores.from->env().now() + stores.from->request_timeout();
  std::string everything;
  result = co_await stores.from->backend().list(std::move(everything), deadline);
  co_return result;
}

/// The locks that are meant: exact names as they are, patterns as the source's list has them.
std::vector<std::string> expand(MigrateSession& session, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  std::vector<std::string> patterns;
  for (const auto& one : wanted) {
    const auto wrong = is_pattern(one) ? core::pattern_error(one) : core::name_error(one);
    if (!wrong.empty()) throw Refusal{fmt::format("'{}': {}", one, wrong)};
    (is_pattern(one) ? patterns : names).push_back(one);
  }
  if (!patterns.empty()) {
    const auto listed = session.run<Result<std::vector<LockStatus>>>(list_source);
    if (!listed.value) fail(listed.failure);
    for (const auto& lock : *listed.value) {
      const bool meant = std::any_of(
          patterns.begin(), patterns.end(),
          [&](const std::string& pattern) { return core::pattern_matches(pattern, lock.name); });
      if (meant) names.push_back(lock.name);
    }
  }
  return moves::parse_list(moves::list_text(std::move(names)));
}

void check_routes(const MigrateSession& session, const moves::Plan& plan) {
  for (const auto& name : plan.names) {
    const auto* route = session.engine().routes().find(name);
    if (route != nullptr && route->migrate && route->migrate->plan == plan.name) continue;
    throw Refusal{
        fmt::format("'{}' is not routed by plan '{}' in this configuration; write `{}` "
                    "below `locks:`",
                    name, plan.name, moves::route_line(name, plan.from, plan.to, plan.name))};
  }
}

std::vector<std::string> taken_places(MigrateSession& session, const moves::Plan& plan) {
  auto taken = session.run<Result<std::vector<std::string>>>([&](Stores stores) {
    return moves::taken_places(stores.to, stores.from->name(), plan.names);
  });
  if (!taken.value) fail(taken.failure);
  return std::move(*taken.value);
}

PlanOutput make_plan(MigrateSession& session, const Arguments& arguments) {
  const auto ends = session.run<Ends>(look_at_ends);
  if (ends.failure.error) fail(ends.failure);
  PlanOutput output;
  output.objections = moves::objections(ends.from, ends.to);
  auto& plan = output.plan;
  plan.name = arguments.plan;
  plan.from = session.from();
  plan.to = session.to();
  moves::describe_target(plan, ends.to, arguments.max_lease);
  plan.names = expand(session, arguments.names.empty() ? session.patterns() : arguments.names);
  if (plan.names.empty()) {
    output.objections.push_back(fmt::format(
        "there is no lock to move: '{}' lists none that matches; name them", plan.from));
  }
  if (to_text(plan).size() > moves::kLongestPlan) {
    output.objections.emplace_back("too many names for one plan; make several");
  }
  check_routes(session, plan);
  for (auto& taken : taken_places(session, plan)) output.objections.push_back(std::move(taken));
  return output;
}

moves::Ledger::Found find_plan(MigrateSession& session, const std::string& plan, bool ask_target) {
  return session.run<moves::Ledger::Found>(
      [plan, ask_target](Stores stores) -> asio::awaitable<moves::Ledger::Found> {
        moves::Ledger ledger(stores.from, stores.to);
        auto found = co_await ledger.find(plan, ask_target);
        co_return found;
      });
}

Failure with_ledger(MigrateSession& session,
                    std::function<asio::awaitable<Failure>(moves::Ledger&)> work) {
  return session.run<Failure>([work = std::move(work)](Stores stores) -> asio::awaitable<Failure> {
    moves::Ledger ledger(stores.from, stores.to);
    auto failure = co_await work(ledger);
    co_return failure;
  });
}

void require_started(const moves::Ledger::Found& found, const std::string& plan) {
  if (!found.plan) {
    throw Refusal{fmt::format("plan '{0}' was not started; run `dlock migrate start {0}`", plan)};
  }
  if (!found.listed && !found.finished) throw Refusal{moves::start_broken_off(plan)};
}

/// Before a lock moves there, who knows the target alone has to be kept out; before one moves back,
/// the target has to be the one that the plan moves to.
void require_noted_target(const moves::Ledger::Found& found, moves::Goal goal) {
  if (found.finished) return;
  const auto& plan = *found.plan;
  if (!found.known_in_target && goal != moves::Goal::finish) {
    throw Refusal{fmt::format(
        "the store '{0}' does not know plan '{1}': it has lost its notes, or is another "
        "store than the one that the plan moves to; correct its url, or run `dlock "
        "migrate start {1}`, which writes them anew; nothing was changed",
        plan.to, plan.name)};
  }
  if (!found.listed_in_target && goal == moves::Goal::advance) {
    throw Refusal{fmt::format(
        "plan '{1}' is not among the unfinished plans of the store '{0}' (lost there, or its "
        "withdrawal was broken off): programs that know '{0}' alone are not kept out; run `dlock "
        "migrate start {1}`, which writes it anew, or `dlock migrate rollback {1} --all "
        "--withdraw`",
        plan.to, plan.name)};
  }
}

moves::Ledger::Found started_plan(MigrateSession& session, const std::string& plan,
                                  bool ask_target) {
  auto found = find_plan(session, plan, ask_target);
  if (found.failure.error) fail(found.failure);
  require_started(found, plan);
  if (found.plan->from != session.from() || found.plan->to != session.to()) {
    throw Refusal{
        fmt::format("plan '{}' was started from '{}' to '{}', but this configuration says "
                    "from '{}' to '{}'",
                    plan, found.plan->from, found.plan->to, session.from(), session.to())};
  }
  return found;
}

template <class Output>
void print(const Arguments& arguments, const Output& output) {
  print_line(arguments.json ? to_json(output) : to_text(output));
}

/// The plan has exact names. What its route's pattern matches besides is nobody's: each program
/// locks it where its own route leads.
void warn_of_unlisted(const MigrateSession& session, const moves::Plan& plan, bool finished) {
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

int plan(MigrateSession& session, const Arguments& arguments) {
  auto output = make_plan(session, arguments);
  // What `start` would be refused for.
  const auto objection = with_ledger(
      session, [plan = output.plan](moves::Ledger& ledger) { return ledger.objection(plan); });
  if (objection.error == errc::config_unsafe) {
    output.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
  print(arguments, output);
  warn_of_unlisted(session, output.plan, false);
  return status(output.objections.empty() ? Exit::ok : Exit::migrate_refused);
}

std::string fresh_id(core::Env& env) { return fmt::format("{:016x}", env.random()); }

int start(MigrateSession& session, const Arguments& arguments) {
  // Again, with nothing said about names: what is missing of it is written anew.
  auto found = find_plan(session, arguments.plan, false);
  if (found.failure.error) fail(found.failure);
  PlanOutput output;
  if (found.plan && found.listed && arguments.names.empty()) {
    output.plan = *found.plan;
  } else {
    output = make_plan(session, arguments);
    output.plan.id = session.run<std::string>([](Stores stores) -> asio::awaitable<std::string> {
      co_return fresh_id(stores.from->env());
    });
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

int show(MigrateSession& session, const Arguments& arguments) {
  auto found = find_plan(session, arguments.plan, true);
  // A target that is away is told of below, with everything else.
  if (found.failure.error) found = find_plan(session, arguments.plan, false);
  if (found.failure.error) fail(found.failure);
  require_started(found, arguments.plan);
  moves::PlanStatus report;
  for (int look = 0; look < kMostLooks; ++look) {
    report = session.run<moves::PlanStatus>([&](Stores stores) {
      return moves::survey(stores.from, stores.to, *found.plan, found.moved);
    });
    if (!has_alarm(report)) break;
    // What a command does meanwhile is no alarm: only what stands there still when it is looked at
    // again.
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

moves::Coordinator::Options coordinator_options(const Arguments& arguments, core::Env& env) {
  moves::Coordinator::Options options;
  const auto wait = arguments.wait.value_or(kDefaultWait);
  options.deadline = wait == kWaitForever ? kNever : env.now() + wait;
  options.target_gone = arguments.target_gone;
  return options;
}

std::vector<moves::StepReport> take(MigrateSession& session, const Arguments& arguments,
                                    const moves::Plan& plan, moves::Goal goal) {
  const auto coordinator = std::make_shared<std::shared_ptr<moves::Coordinator>>();
  const auto names = chosen(arguments, plan);
  return session.run<std::vector<moves::StepReport>>(
      [&, coordinator](Stores stores) {
        auto& env = stores.from->env();
        *coordinator = std::make_shared<moves::Coordinator>(stores.from, stores.to, plan,
                                                            coordinator_options(arguments, env));
        return moves::take_all(*coordinator, env, goal, names);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
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

bool all_in(MigrateSession& session, const moves::Plan& plan, moves::Goal goal) {
  return session.run<bool>([&](Stores stores) -> asio::awaitable<bool> {
    for (const auto& name : plan.names) {
      const auto deadline = stores.from->env().now() + stores.from->request_timeout();
      const auto answer = co_await stores.from->backend().record(name, deadline);
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
