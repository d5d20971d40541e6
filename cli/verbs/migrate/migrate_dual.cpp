// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_dual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/output/exit_codes.hpp"
#include "cli/output/migrate_dual_output.hpp"
#include "cli/output/output.hpp"
#include "cli/verbs/migrate/migrate_refusal.hpp"
#include "core/config/routes.hpp"
#include "dlock/spi/name.hpp"
#include "migration/dual/dual_coordinator.hpp"
#include "migration/dual/dual_ledger.hpp"
#include "migration/dual/dual_survey.hpp"

namespace dlock::cli {
namespace {

namespace moves = core::migration;
using moves::DualStores;
using std::chrono::milliseconds;

constexpr milliseconds kDefaultWait{30'000};

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

asio::awaitable<Result<DualStores>> resolve(MigrateSession::Stores stores) {
  Result<DualStores> result;
  DualStores dual;
  dual.from = stores.from;
  dual.to = stores.to;
  dual.window = stores.window;
  if (!dual.window) {
    auto end = co_await moves::durable_end(stores.from, stores.to);
    if (!end.value) {
      result.failure = std::move(end.failure);
      co_return result;
    }
    dual.window = std::move(*end.value);
  }
  result.value = std::move(dual);
  co_return result;
}

struct Ends {
  Failure failure;
  moves::End from;
  moves::End to;
  moves::End window;
};

asio::awaitable<Ends> look_at_ends(DualStores stores) {
  Ends ends;
  for (auto* const end : {&ends.from, &ends.to, &ends.window}) {
    auto store = stores.window;
    if (end == &ends.from) store = stores.from;
    if (end == &ends.to) store = stores.to;
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

Exit exit_of(const moves::DualReport& report) {
  switch (report.verdict) {
    case moves::Verdict::done:
      return Exit::ok;
    case moves::Verdict::waiting:
      return Exit::migrate_waits;
    case moves::Verdict::refused:
      return Exit::migrate_refused;
    case moves::Verdict::unreachable:
    case moves::Verdict::stopped:
      break;
  }
  return Exit::unavailable;
}

void check_options(const MigrateSession& session, const Arguments& arguments) {
  const bool starts = arguments.verb == Verb::migrate_plan || arguments.verb == Verb::migrate_start;
  if (!starts && !arguments.names.empty()) {
    throw Misuse{"--name: in mode dual a step is of the whole plan; leave it out"};
  }
  if (arguments.target_gone) {
    throw Misuse{
        "--target-gone is of mode move; in mode dual stop all programs, wait for the longest "
        "lease, and start them with the store that is left"};
  }
  if (arguments.mode == "move") {
    throw Misuse{
        fmt::format("--mode move: the route of plan '{}' has `mode: dual`; write one of "
                    "them otherwise",
                    arguments.plan)};
  }
  if (!arguments.window_store.empty() && arguments.window_store != session.window()) {
    // Programs find it by their route alone.
    throw Misuse{
        fmt::format("--window {0}: the route of plan '{1}' does not say so; write "
                    "`window: {0}` beside `plan: {1}`, in every program",
                    arguments.window_store, arguments.plan)};
  }
}

/// One verb on one plan.
class Dual {
 public:
  Dual(MigrateSession& session, const Arguments& arguments)
      : session_(session), arguments_(arguments) {
    auto resolved = session.run<Result<DualStores>>(resolve);
    if (!resolved.value) fail(resolved.failure);
    stores_ = std::move(*resolved.value);
  }

  int plan();
  int start();
  int show();
  int step(moves::Goal goal);

 private:
  template <class T>
  T run(std::function<asio::awaitable<T>(DualStores)> work,
        const std::function<void()>& stop = {}) {
    return session_.run<T>([&](const MigrateSession::Stores&) { return work(stores_); }, stop);
  }
  DualPlanOutput make_plan();
  void name_locks(DualPlanOutput& output, const Ends& ends) const;
  moves::DualLedger::Found find();
  moves::DualLedger::Found started();
  void require_started(const moves::DualLedger::Found& found) const;
  moves::DualReport take(
      const moves::Plan& plan,
      std::function<asio::awaitable<moves::DualReport>(std::shared_ptr<moves::DualCoordinator>)>
          work);
  Failure with_ledger(std::function<asio::awaitable<Failure>(moves::DualLedger&)> work);
  int tell(const DualStepOutput& output) const;

  MigrateSession& session_;
  const Arguments& arguments_;
  DualStores stores_;
};

/// Whatever the route matches takes part; names are those that are looked at, where a store cannot
/// list its locks.
void Dual::name_locks(DualPlanOutput& output, const Ends& ends) const {
  auto& plan = output.plan;
  for (const auto& one : session_.patterns()) {
    (one.find('*') != std::string::npos ? plan.patterns : plan.names).push_back(one);
  }
  for (const auto& one : arguments_.names) {
    const auto wrong = name_error(one);
    if (!wrong.empty()) throw Refusal{fmt::format("'{}': {}", one, wrong)};
    if (one.find('*') != std::string::npos) {
      throw Refusal{
          fmt::format("'{}': in mode dual all locks that the route matches take part; "
                      "give exact names only, of locks that a store cannot list",
                      one)};
    }
    plan.names.push_back(one);
  }
  plan.names = moves::parse_list(moves::list_text(std::move(plan.names)));
  plan.patterns = moves::parse_list(moves::list_text(std::move(plan.patterns)));
  for (const auto& name : plan.names) {
    const auto* route = session_.engine().routes().find(name);
    if (route != nullptr && route->migrate && route->migrate->plan == plan.name) continue;
    throw Refusal{
        fmt::format("'{}' is not routed by plan '{}' in this configuration; write `{}` "
                    "below `locks:`",
                    name, plan.name, moves::route_line(name, plan, 0))};
  }
  for (const auto* end : {&ends.from, &ends.to}) {
    if (end->capabilities.can_list || plan.patterns.empty()) continue;
    output.remarks.push_back(
        fmt::format("'{}' cannot list its locks: programs without the plan's route are seen there "
                    "on locks that "
                    "are named alone: dlock migrate start {} NAME...",
                    end->name, plan.name));
  }
}

DualPlanOutput Dual::make_plan() {
  const auto ends = run<Ends>(look_at_ends);
  if (ends.failure.error) fail(ends.failure);
  DualPlanOutput output;
  output.objections = moves::dual_objections(ends.from, ends.to, ends.window);
  auto& plan = output.plan;
  plan.name = arguments_.plan;
  plan.from = ends.from.name;
  plan.to = ends.to.name;
  plan.window = ends.window.name;
  moves::describe_dual(plan, ends.from, ends.to, arguments_.max_lease, arguments_.registration);
  name_locks(output, ends);
  if (to_text(plan).size() > moves::kLongestPlan) {
    output.objections.emplace_back("too many names for one plan; write patterns, or make several");
  }
  auto sealed = run<Result<std::vector<std::string>>>(
      [&](DualStores stores) { return moves::sealed_places(std::move(stores), plan.names); });
  if (!sealed.value) fail(sealed.failure);
  for (auto& one : *sealed.value) output.objections.push_back(std::move(one));
  return output;
}

moves::DualLedger::Found Dual::find() {
  auto found = run<moves::DualLedger::Found>(
      [plan = arguments_.plan](DualStores stores) -> asio::awaitable<moves::DualLedger::Found> {
        moves::DualLedger ledger(std::move(stores));
        auto answer = co_await ledger.find(plan);
        co_return answer;
      });
  if (found.failure.error) fail(found.failure);
  if (found.plan && found.plan->mode != MigrateMode::dual) {
    throw Refusal{
        fmt::format("plan '{0}' was started in mode move; finish or withdraw it with the "
                    "route that it was started with, or give this one another name",
                    arguments_.plan)};
  }
  return found;
}

void Dual::require_started(const moves::DualLedger::Found& found) const {
  if (!found.plan) {
    throw Refusal{
        fmt::format("plan '{0}' was not started; run `dlock migrate start {0}`", arguments_.plan)};
  }
  if (!found.started) throw Refusal{moves::start_broken_off(arguments_.plan)};
}

moves::DualLedger::Found Dual::started() {
  auto found = find();
  require_started(found);
  if (found.plan->from != session_.from() || found.plan->to != session_.to()) {
    throw Refusal{fmt::format(
        "plan '{}' was started from '{}' to '{}', but this configuration "
        "says from '{}' to '{}'",
        arguments_.plan, found.plan->from, found.plan->to, session_.from(), session_.to())};
  }
  return found;
}

/// Its coordinator is stopped by a signal.
moves::DualReport Dual::take(
    const moves::Plan& plan,
    std::function<asio::awaitable<moves::DualReport>(std::shared_ptr<moves::DualCoordinator>)>
        work) {
  const auto coordinator = std::make_shared<std::shared_ptr<moves::DualCoordinator>>();
  return run<moves::DualReport>(
      [&, coordinator](DualStores stores) {
        const auto wait = arguments_.wait.value_or(kDefaultWait);
        moves::DualCoordinator::Options options;
        options.deadline = wait == kWaitForever ? kNever : stores.from->env().now() + wait;
        options.legacy_gone = arguments_.legacy_gone;
        options.drain = true;
        options.on_progress = [](const std::string& text) { complain(text); };
        *coordinator =
            std::make_shared<moves::DualCoordinator>(std::move(stores), plan, std::move(options));
        return work(*coordinator);
      },
      [coordinator] {
        if (*coordinator) (*coordinator)->stop();
      });
}

Failure Dual::with_ledger(std::function<asio::awaitable<Failure>(moves::DualLedger&)> work) {
  return run<Failure>([&](DualStores stores) -> asio::awaitable<Failure> {
    moves::DualLedger ledger(std::move(stores));
    auto failure = co_await work(ledger);
    co_return failure;
  });
}

int Dual::tell(const DualStepOutput& output) const {
  print_line(arguments_.json ? to_json(output, now_ms()) : to_text(output));
  return status(exit_of(output.report));
}

int Dual::plan() {
  auto output = make_plan();
  // What `start` would be refused for.
  const auto objection =
      with_ledger([&](moves::DualLedger& ledger) { return ledger.objection(output.plan); });
  if (objection.error == errc::config_unsafe) {
    output.objections.push_back(objection.text);
  } else if (objection.error) {
    fail(objection);
  }
  print_line(arguments_.json ? to_json(output) : to_text(output));
  return status(output.objections.empty() ? Exit::ok : Exit::migrate_refused);
}

int Dual::start() {
  // Again, with nothing said about locks: what is missing of it is written anew.
  const auto found = find();
  DualStepOutput output;
  if (found.plan && found.started && arguments_.names.empty()) {
    output.plan = *found.plan;
  } else {
    auto made = make_plan();
    if (!made.objections.empty()) {
      print_line(arguments_.json ? to_json(made) : to_text(made));
      return status(Exit::migrate_refused);
    }
    for (const auto& remark : made.remarks) complain("note: " + remark);
    output.plan = std::move(made.plan);
    output.plan.id = run<std::string>([](DualStores stores) -> asio::awaitable<std::string> {
      co_return fmt::format("{:016x}", stores.window->env().random());
    });
  }
  if (arguments_.at && found.window && found.window->is_open()) {
    throw Refusal{
        fmt::format("--at: the window is there and admits {}; move it with `dlock migrate "
                    "advance {}` or `rollback`",
                    moves::phases_text(found.window->lo, found.window->hi), arguments_.plan)};
  }
  output.report =
      take(output.plan, [&](const std::shared_ptr<moves::DualCoordinator>& coordinator) {
        return coordinator->start(arguments_.at);
      });
  return tell(output);
}

int Dual::show() {
  const auto found = find();
  require_started(found);
  auto report = run<moves::DualStatus>(
      [&](DualStores stores) { return moves::dual_survey(std::move(stores), *found.plan); });
  print_line(arguments_.json ? to_json(report, now_ms()) : to_text(report, now_ms()));
  return status(Exit::ok);
}

int Dual::step(moves::Goal goal) {
  const auto found = started();
  DualStepOutput output;
  output.plan = *found.plan;
  output.report =
      take(output.plan, [goal](const std::shared_ptr<moves::DualCoordinator>& coordinator) {
        return coordinator->take(goal);
      });
  const auto& report = output.report;
  const bool done = report.verdict == moves::Verdict::done;
  output.finished = done && report.window && report.window->finished;
  if (done && arguments_.withdraw) {
    if (!report.window || report.window->hi > 0) {
      output.report.verdict = moves::Verdict::waiting;
      output.report.text += "; the plan is withdrawn when phase 0 alone is admitted: go on";
      return tell(output);
    }
    auto gone = take(output.plan, [](const std::shared_ptr<moves::DualCoordinator>& coordinator) {
      return coordinator->withdraw();
    });
    output.withdrawn = gone.verdict == moves::Verdict::done;
    if (!output.withdrawn) output.report = std::move(gone);
  }
  return tell(output);
}

}  // namespace

int migrate_dual(MigrateSession& session, const Arguments& arguments) {
  check_options(session, arguments);
  Dual dual(session, arguments);
  switch (arguments.verb) {
    case Verb::migrate_plan:
      return dual.plan();
    case Verb::migrate_start:
      return dual.start();
    case Verb::migrate_status:
      return dual.show();
    case Verb::migrate_advance:
      return dual.step(moves::Goal::advance);
    case Verb::migrate_rollback:
      return dual.step(moves::Goal::rollback);
    case Verb::migrate_finish:
      return dual.step(moves::Goal::finish);
    default:
      break;
  }
  return status(Exit::usage);
}

}  // namespace dlock::cli
