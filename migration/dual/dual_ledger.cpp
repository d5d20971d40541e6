// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "migration/dual/dual_steps.hpp"

namespace dlock::core::migration {
namespace {

Failure lost_window(const Plan& plan) {
  return unsafe(fmt::format(
      "the store '{0}' has lost the window of plan '{1}': nobody can lock. Find out which "
      "phases the programs have (the `phase:` of their routes), and restore the window "
      "with `dlock migrate start {1} --at LO,HI`",
      plan.window, plan.name));
}

}  // namespace

asio::awaitable<Result<Plan>> DualLedger::read_plan(std::shared_ptr<Store> store,
                                                    std::string plan) {
  Result<Plan> result;
  Ledger ledger(stores_.from, stores_.to);
  const auto note = co_await ledger.read(store, plan_key(plan));
  if (note.status != RecordStatus::done) {
    result.failure = failure_of(*store, note);
    co_return result;
  }
  if (!note.found) co_return result;
  std::string why;
  result.value = parse_plan(*note.found, &why);
  if (!result.value) {
    result.failure = make_failure(
        errc::protocol, fmt::format("the store '{}': the note of plan '{}' cannot be read: {}",
                                    store->name(), plan, why));
  }
  co_return result;
}

asio::awaitable<DualLedger::Found> DualLedger::find(std::string plan) {
  Found found;
  auto known = co_await read_plan(stores_.window, plan);
  found.failure = known.failure;
  if (found.failure.error) co_return found;
  found.plan = std::move(known.value);
  WindowNote note(stores_.window, plan);
  auto look = co_await note.read();
  found.failure = look.failure;
  found.window = std::move(look.window);
  if (found.failure.error) co_return found;
  found.finished = found.window && found.window->finished;
  found.started = found.window && found.window->is_open();
  if (!found.window && found.plan) {
    Ledger ledger(stores_.from, stores_.to);
    const auto listed = co_await ledger.is_listed_anywhere(std::move(plan));
    found.failure = listed.failure;
    found.started = listed.value.value_or(false);
  }
  co_return found;
}

asio::awaitable<Result<Plan>> DualLedger::known_plan(std::string plan) {
  Result<Plan> known;
  for (const auto& store : {stores_.window, stores_.to, stores_.from}) {
    known = co_await read_plan(store, plan);
    if (known.value || known.failure.error) break;
  }
  co_return known;
}

asio::awaitable<Failure> DualLedger::objection(Plan plan) {
  plan.mode = MigrateMode::dual;
  plan.window = stores_.window->name();
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.objection(std::move(plan));
  co_return failure;
}

// The window first: it decides on the plan's id, and a plan without a window has lost it. It admits
// somebody when the plan is listed, and not before: another plan may stand in the way.
asio::awaitable<Failure> DualLedger::publish(Plan plan, std::optional<std::pair<int, int>> at,
                                             std::uint64_t floor) {
  plan.mode = MigrateMode::dual;
  plan.window = stores_.window->name();
  WindowNote note(stores_.window, plan.name);
  const auto before = co_await note.read();
  if (before.failure.error) co_return before.failure;
  Failure failure;
  if (!before.window) failure = co_await objection(plan);
  if (!failure.error) failure = co_await publish_window(plan, at, floor);
  if (failure.error) co_return failure;
  failure = co_await write_text(plan);
  if (failure.error == errc::config_unsafe) {
    co_await discard_window(std::move(plan));
    co_return failure;
  }
  if (!failure.error) failure = co_await open_window(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> DualLedger::open_window(Plan plan) {
  WindowNote note(stores_.window, plan.name);
  for (int i = 0; i < kMostWrites; ++i) {
    auto look = co_await note.read();
    if (look.failure.error) co_return look.failure;
    if (!look.window || look.window->plan_id != plan.id) {
      co_return make_failure(errc::unavailable,
                             fmt::format("plan '{}' was withdrawn meanwhile, or is started by "
                                         "somebody else; try again",
                                         plan.name));
    }
    if (look.window->is_open()) co_return Failure{};
    auto open = *look.window;
    open.ver = 1;
    ++open.seq;
    const auto written = co_await note.write(std::move(look.text), std::move(open));
    if (written.outcome == WindowNote::Written::Outcome::failed) co_return written.failure;
  }
  co_return out_of_writes(*stores_.window);
}

asio::awaitable<void> DualLedger::discard_window(Plan plan) {
  WindowNote note(stores_.window, plan.name);
  auto look = co_await note.read();
  if (!look.window || look.window->is_open() || look.window->plan_id != plan.id) co_return;
  auto& store = *stores_.window;
  const auto deadline = store.env().now() + store.request_timeout();
  co_await store.backend().migration().set_note(window_key(plan.name), std::move(look.text),
                                                std::nullopt, deadline);
}

asio::awaitable<Failure> DualLedger::write_text(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  Failure failure;
  if (has_third_store()) {
    failure = co_await ledger.write(stores_.window, plan_key(plan.name), to_text(plan));
    if (failure.error) co_return failure;
  }
  failure = co_await ledger.publish(std::move(plan));
  co_return failure;
}

asio::awaitable<Result<Plan>> DualLedger::publish_text(Plan plan) {
  Result<Plan> result;
  plan.mode = MigrateMode::dual;
  plan.window = stores_.window->name();
  const auto known = co_await known_plan(plan.name);
  result.failure = known.failure;
  if (result.failure.error) co_return result;
  if (known.value) {
    if (!same_but_id(plan, *known.value)) {
      result.failure = name_is_taken(plan.name);
      co_return result;
    }
    plan.id = known.value->id;
  }
  result.failure = co_await write_text(plan);
  if (!result.failure.error) result.value = std::move(plan);
  co_return result;
}

asio::awaitable<Failure> DualLedger::publish_window(Plan& plan,
                                                    std::optional<std::pair<int, int>> at,
                                                    std::uint64_t floor) {
  auto& env = stores_.window->env();
  WindowNote note(stores_.window, plan.name);
  for (int i = 0; i < kMostWrites; ++i) {
    const auto look = co_await note.read();
    if (look.failure.error) co_return look.failure;
    if (look.window) {
      const auto& window = *look.window;
      if (window.from != plan.from || window.to != plan.to) {
        co_return unsafe(
            fmt::format("there is a plan '{}' already, from '{}' to '{}'; give this one "
                        "another name",
                        plan.name, window.from, window.to));
      }
      if (window.finished) {
        co_return unsafe(
            fmt::format("plan '{}' was finished before; give this one another name", plan.name));
      }
      if (at && (window.lo != at->first || window.hi != at->second)) {
        co_return unsafe(
            fmt::format("plan '{0}' has its window, and admits phases {1}; move it with "
                        "`dlock migrate advance {0}` or `rollback`",
                        plan.name, phases_text(window.lo, window.hi)));
      }
      plan.id = window.plan_id;
      co_return Failure{};
    }
    const auto known = co_await known_plan(plan.name);
    if (known.failure.error) co_return known.failure;
    Ledger ledger(stores_.from, stores_.to);
    const auto listed = co_await ledger.is_listed_anywhere(plan.name);
    if (!listed.value) co_return listed.failure;
    // What a start that was refused has left counts for nothing.
    if (known.value && *listed.value) {
      if (!same_but_id(plan, *known.value)) {
        co_return name_is_taken(plan.name);
      }
      if (!at) co_return lost_window(plan);
      plan.id = known.value->id;
    }
    Window window;
    window.plan = plan.name;
    window.plan_id = plan.id;
    window.from = plan.from;
    window.to = plan.to;
    window.born = fmt::format("{:016x}", env.random());
    window.lo = at ? at->first : 0;
    window.hi = at ? at->second : 0;
    window.seq = 1;
    window.floor = floor;
    window.lease = plan.registration;
    window.since_ms = std::max<std::int64_t>(env.wall_clock_ms(), 0);
    const auto written = co_await note.write(std::nullopt, std::move(window));
    if (written.outcome == WindowNote::Written::Outcome::done) co_return Failure{};
    if (written.outcome == WindowNote::Written::Outcome::failed) co_return written.failure;
  }
  co_return out_of_writes(*stores_.window);
}

asio::awaitable<Failure> DualLedger::certify(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.certify(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> DualLedger::withdraw(Plan plan, std::vector<std::string> over) {
  WindowNote note(stores_.window, plan.name);
  const auto look = co_await note.read();
  if (look.failure.error) co_return look.failure;
  if (look.window) {
    const auto& window = *look.window;
    if (!can_withdraw(window)) co_return unsafe(still_admits(window));
    auto left = window.programs;
    std::erase_if(left, [&](const Program& program) {
      return std::find(over.begin(), over.end(), program.id) != over.end();
    });
    if (!left.empty()) {
      co_return unsafe(
          fmt::format("{} programs take part in plan '{}', the first is {}; write `store: "
                      "{}` instead of `migrate` first",
                      left.size(), plan.name, describe(left.front()), plan.from));
    }
    auto& store = *stores_.window;
    const auto deadline = store.env().now() + store.request_timeout();
    const auto gone = co_await store.backend().migration().set_note(
        window_key(plan.name), look.text, std::nullopt, deadline);
    if (gone.status == RecordStatus::conflict || gone.status == RecordStatus::unknown) {
      co_return make_failure(errc::unavailable, "somebody else writes the window; try again");
    }
    if (gone.status != RecordStatus::done) co_return failure_of(store, gone);
  }
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.withdraw(plan);
  if (!failure.error && has_third_store()) {
    failure = co_await ledger.erase(stores_.window, plan_key(plan.name));
  }
  co_return failure;
}

}  // namespace dlock::core::migration
