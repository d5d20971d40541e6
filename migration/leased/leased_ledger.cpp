// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"

namespace dlock::core::migration {
namespace {

Failure lost_gate(const Plan& plan) {
  return unsafe(
      fmt::format("the store '{0}' has lost the gate of plan '{1}', so no program acquires a lock "
                  "of it; run `dlock migrate start {1} --at S` if the locks were in '{2}' alone, "
                  "or `--at T` if they were in '{3}' alone",
                  plan.gate, plan.name, plan.from, plan.to));
}

}  // namespace

LeasedGate first_gate(const Plan& plan, Env& env) {
  LeasedGate gate;
  gate.state = LeasedState::ended;
  gate.version = 0;
  gate.from = plan.from;
  gate.to = plan.to;
  gate.lease = plan.lease;
  gate.plan = plan.name;
  gate.plan_id = plan.id;
  gate.born = fmt::format("{:016x}", env.random());
  gate.since_ms = std::max<std::int64_t>(env.wall_clock_ms(), 0);
  return gate;
}

asio::awaitable<Result<Plan>> LeasedLedger::known_plan(std::string plan) {
  Result<Plan> known;
  Ledger ledger(stores_.from, stores_.to);
  for (const auto& store : {stores_.gate, stores_.to, stores_.from}) {
    const auto note = co_await ledger.read(store, plan_key(plan));
    if (note.status != RecordStatus::done) {
      known.failure = failure_of(*store, note);
      co_return known;
    }
    if (!note.found) continue;
    std::string why;
    known.value = parse_plan(*note.found, &why);
    if (!known.value) {
      known.failure = make_failure(
          errc::protocol, fmt::format("the store '{}': the note of plan '{}' cannot be read: {}",
                                      store->name(), plan, why));
    }
    co_return known;
  }
  co_return known;
}

asio::awaitable<LeasedLedger::Found> LeasedLedger::find(std::string plan) {
  Found found;
  auto known = co_await known_plan(plan);
  found.failure = std::move(known.failure);
  if (found.failure.error) co_return found;
  found.plan = std::move(known.value);
  LeasedNote note(stores_, plan);
  auto look = co_await note.read();
  found.failure = std::move(look.failure);
  found.gate = std::move(look.gate);
  if (found.failure.error) co_return found;
  Ledger ledger(stores_.from, stores_.to);
  const auto listed = co_await ledger.read(stores_.to, std::string(kPlansIn));
  const auto entries = entries_of(*stores_.to, kPlansIn, listed);
  found.failure = entries.failure;
  if (entries.value) found.listed = lists_started(*entries.value, plan);
  co_return found;
}

asio::awaitable<Failure> LeasedLedger::objection(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.objection(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> LeasedLedger::publish_text(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.publish(plan);
  if (!failure.error && has_third_store()) {
    failure = co_await ledger.write(stores_.gate, plan_key(plan.name), to_text(plan));
  }
  co_return failure;
}

// The gate is written first, as not begun, and decides on the plan's id. It begins when the plan is
// listed: until then another plan may prevent it. So a plan that is listed without a gate has lost
// it.
asio::awaitable<Failure> LeasedLedger::publish(Plan plan) {
  LeasedNote note(stores_, plan.name);
  for (int i = 0; i < kMostWrites; ++i) {
    auto look = co_await note.read();
    if (look.failure.error) co_return look.failure;
    const bool is_there = look.gate && look.gate->state != LeasedState::ended;
    const bool is_known = is_there || (look.gate && !look.gate->has_begun());
    if (is_known && (look.gate->from != plan.from || look.gate->to != plan.to)) {
      co_return name_is_taken(plan.name);
    }
    if (is_there && look.gate->state == LeasedState::final_) {
      co_return unsafe(
          fmt::format("plan '{}' was finished before; give this one another name", plan.name));
    }
    if (is_known) plan.id = look.gate->plan_id;
    if (is_there) co_return co_await publish_text(std::move(plan));
    if (!look.gate) {
      Ledger ledger(stores_.from, stores_.to);
      const auto listed = co_await ledger.is_listed_anywhere(plan.name);
      if (!listed.value) co_return listed.failure;
      if (*listed.value) co_return lost_gate(plan);
    }
    if (is_known) co_return co_await begin(std::move(plan), std::move(look));
    const auto written = co_await note.write(std::move(look.text), first_gate(plan, env()));
    if (written.outcome == LeasedNote::Written::Outcome::failed) co_return written.failure;
  }
  co_return out_of_writes(*stores_.gate);
}

asio::awaitable<Failure> LeasedLedger::begin(Plan plan, LeasedNote::Look look) {
  auto failure = co_await publish_text(plan);
  if (failure.error) co_return failure;
  auto begun = *look.gate;
  begun.state = LeasedState::source;
  begun.version = 1;
  // So the first program does not have to raise it.
  const auto now = floor_above(begun.ceiling, env().wall_clock_ms());
  if (now) begun = with_room_for(begun, *now + 1);
  failure = co_await replace(std::move(look), std::move(begun));
  co_return failure;
}

asio::awaitable<Failure> LeasedLedger::restore(Plan plan, LeasedGate gate) {
  auto failure = co_await publish_text(std::move(plan));
  if (failure.error) co_return failure;
  LeasedNote note(stores_, gate.plan);
  auto look = co_await note.read();
  if (look.failure.error) co_return look.failure;
  if (look.gate && look.gate->has_begun()) co_return Failure{};
  failure = co_await replace(std::move(look), std::move(gate));
  co_return failure;
}

asio::awaitable<Failure> LeasedLedger::replace(LeasedNote::Look look, LeasedGate gate) {
  LeasedNote note(stores_, gate.plan);
  auto written = co_await note.write(std::move(look.text), gate);
  if (written.outcome == LeasedNote::Written::Outcome::failed) co_return written.failure;
  if (written.outcome == LeasedNote::Written::Outcome::done) co_return Failure{};
  const auto now_there = co_await note.read();
  if (now_there.failure.error) co_return now_there.failure;
  if (now_there.gate && now_there.gate->has_begun() && now_there.gate->plan_id == gate.plan_id) {
    co_return Failure{};
  }
  co_return make_failure(errc::unavailable,
                         fmt::format("another command changes the gate of plan '{}' at the same "
                                     "time; run it again",
                                     gate.plan));
}

asio::awaitable<Failure> LeasedLedger::certify(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.certify(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> LeasedLedger::withdraw(Plan plan) {
  Ledger ledger(stores_.from, stores_.to);
  auto failure = co_await ledger.withdraw(plan);
  if (!failure.error && has_third_store()) {
    failure = co_await ledger.erase(stores_.gate, plan_key(plan.name));
  }
  co_return failure;
}

}  // namespace dlock::core::migration
