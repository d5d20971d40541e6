// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/verbs/migrate/migrate_refusal.hpp"
#include "core/config/routes.hpp"

namespace dlock::cli {

namespace moves = core::migration;
using Stores = MigrateSession::Stores;

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

void require_governed(const MigrateSession& session, const moves::Plan& plan) {
  if (!plan.has_gate()) return;
  for (const auto& match : session.patterns()) {
    const bool has = std::any_of(
        plan.patterns.begin(), plan.patterns.end(),
        [&](const std::string& pattern) { return core::pattern_covers(pattern, match); });
    if (has) continue;
    throw Refusal{fmt::format(
        "plan '{0}' was started for '{1}', and a route of this configuration has it for '{2}': "
        "give those locks a plan of their own, or withdraw this one and start it anew",
        plan.name, fmt::join(plan.patterns, "' and '"), match)};
  }
}

}  // namespace dlock::cli
