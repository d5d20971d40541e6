// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_survey.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/config/routes.hpp"
#include "migration/gate.hpp"

namespace dlock::core::migration {
namespace {

void add_non_participants(const Plan& plan, const LockStatus& lock, const std::string& store,
                          std::vector<Stranger>& strangers) {
  const auto mark = participant_mark(plan.name);
  if (lock.held) {
    const auto owner = lock.owner.value_or(Owner());
    if (!owner.id.starts_with(mark)) strangers.push_back({store, lock.name, owner, false});
  }
  for (const auto& owner : lock.waiting) {
    if (!owner.id.starts_with(mark)) strangers.push_back({store, lock.name, owner, true});
  }
}

std::string next_of(const LeasedStatus& status) {
  if (!status.gate) return "restore the gate";
  const auto& gate = *status.gate;
  const auto& plan = status.plan.name;
  switch (gate.state) {
    case LeasedState::source:
      return fmt::format("configure the route in every program, then `dlock migrate advance {}`",
                         plan);
    case LeasedState::source_then_target:
      return fmt::format(
          "`dlock migrate advance {0} --legacy-gone` when no program without the route is left; "
          "it waits {1} for the programs to read the gate. Back: `dlock migrate rollback {0}`",
          plan, seconds_text(turn_wait(gate.lease)));
    case LeasedState::target:
      return fmt::format(
          "`dlock migrate finish {0}` (permanent). Back: `dlock migrate rollback {0}`", plan);
    case LeasedState::target_then_source:
      return fmt::format(
          "`dlock migrate rollback {0}`; it waits {1} for the programs to read the gate. Forward: "
          "`dlock migrate advance {0}`",
          plan, seconds_text(turn_wait(gate.lease)));
    case LeasedState::final_:
      return fmt::format("nothing: it is finished; write `store: {}` instead of `migrate`",
                         gate.to);
    case LeasedState::ended:
      break;
  }
  return fmt::format("nothing: it was withdrawn; write `store: {}` instead of `migrate`",
                     gate.from);
}

}  // namespace

asio::awaitable<StrangersFound> strangers_in(std::shared_ptr<Store> store, Plan plan) {
  StrangersFound found;
  found.failure = co_await store->connected();
  if (found.failure.error) {
    found.failure = failure_of(*store, found.failure);
    co_return found;
  }
  auto& backend = store->backend();
  if (backend.capabilities().can_list) {
    auto prefix = plan.prefix();
    const auto listed =
        co_await backend.list(std::move(prefix), store->env().now() + store->request_timeout());
    if (!listed.value) {
      found.failure = failure_of(*store, listed.failure);
      co_return found;
    }
    for (const auto& lock : *listed.value) {
      if (plan.has(lock.name)) add_non_participants(plan, lock, store->name(), found.strangers);
    }
    co_return found;
  }
  for (const auto& pattern : plan.patterns) {
    if (is_pattern(pattern)) {
      found.unlisted = true;
      continue;
    }
    auto one = co_await backend.inspect(pattern, store->env().now() + store->request_timeout());
    if (!one.value) {
      found.failure = failure_of(*store, one.failure);
      co_return found;
    }
    one.value->name = pattern;
    add_non_participants(plan, *one.value, store->name(), found.strangers);
  }
  co_return found;
}

asio::awaitable<LeasedStatus> leased_survey(LeasedStores stores, Plan plan) {
  LeasedStatus status;
  status.plan = std::move(plan);
  LeasedNote note(stores, status.plan.name);
  auto look = co_await note.read();
  if (look.failure.error) {
    status.alarms.push_back(look.failure.text);
    co_return status;
  }
  status.gate = std::move(look.gate);
  if (!status.gate) {
    status.alarms.push_back(fmt::format(
        "the store '{0}' has lost the gate: no program acquires a lock; run `dlock migrate start "
        "{1} --at S` if the locks were in '{2}' alone, or `--at T` if they were in '{3}' alone",
        stores.gate->name(), status.plan.name, status.plan.from, status.plan.to));
  } else if (status.gate->plan_id != status.plan.id) {
    status.alarms.push_back(
        fmt::format("the gate in the store '{}' is that of another start of the plan: programs "
                    "that read the earlier one acquire nothing",
                    stores.gate->name()));
  }
  status.next = next_of(status);
  const bool is_over = status.gate && (status.gate->state == LeasedState::final_ ||
                                       status.gate->state == LeasedState::ended);
  if (is_over) co_return status;
  for (const auto& store : {stores.from, stores.to}) {
    auto found = co_await strangers_in(store, status.plan);
    if (found.failure.error) status.alarms.push_back(found.failure.text);
    if (found.unlisted) {
      status.remarks.push_back(fmt::format(
          "'{}' cannot list its locks: programs without the plan's route are seen there only on "
          "locks that the route matches by their exact names",
          store->name()));
    }
    for (auto& one : found.strangers) {
      const bool is_harmful = status.gate && !one.waits &&
                              (store == stores.from ? is_target_alone(status.gate->state)
                                                    : status.gate->state != LeasedState::final_);
      if (is_harmful) status.alarms.push_back(describe(one));
      status.strangers.push_back(std::move(one));
    }
  }
  co_return status;
}

}  // namespace dlock::core::migration
