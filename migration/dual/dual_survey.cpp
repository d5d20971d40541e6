// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "migration/await_lock.hpp"
#include "migration/ledger.hpp"
#include "migration/policy/plan_claims.hpp"
#include "migration/record.hpp"
#include "migration/step_report.hpp"

namespace dlock::core::migration {
namespace {

constexpr int kMostReadings = 5;

TimePoint request_deadline(Store& store) { return store.env().now() + store.request_timeout(); }

bool is_known(const Owner& owner, const KnownPrograms& known) {
  return std::any_of(known.begin(), known.end(),
                     [&](const std::string& program) { return is_claim_of(owner.id, program); });
}

void add_strangers(const LockStatus& lock, const std::string& store, const KnownPrograms& known,
                   std::vector<Stranger>& strangers) {
  if (lock.held) {
    const auto owner = lock.owner.value_or(Owner());
    if (!is_known(owner, known)) strangers.push_back({store, lock.name, owner, false});
  }
  for (const auto& owner : lock.waiting) {
    if (!is_known(owner, known)) strangers.push_back({store, lock.name, owner, true});
  }
}

/// What a plan has in the store: its exact names, and what is listed there and matches a pattern.
asio::awaitable<Result<std::vector<LockStatus>>> locks_in(std::shared_ptr<Store> store, Plan plan) {
  Result<std::vector<LockStatus>> result;
  result.failure = co_await store->connected();
  if (result.failure.error) {
    result.failure = failure_of(*store, result.failure);
    co_return result;
  }
  std::vector<LockStatus> all;
  for (const auto& name : plan.names) {
    auto one = co_await store->backend().inspect(name, request_deadline(*store));
    if (!one.value) {
      result.failure = failure_of(*store, one.failure);
      co_return result;
    }
    one.value->name = name;
    all.push_back(std::move(*one.value));
  }
  if (!plan.patterns.empty() && store->backend().capabilities().can_list) {
    auto prefix = plan.prefix();
    auto listed = co_await store->backend().list(std::move(prefix), request_deadline(*store));
    if (!listed.value) {
      result.failure = failure_of(*store, listed.failure);
      co_return result;
    }
    for (auto& lock : *listed.value) {
      const bool exact = std::binary_search(plan.names.begin(), plan.names.end(), lock.name);
      if (!exact && plan.has(lock.name)) all.push_back(std::move(lock));
    }
  }
  result.value = std::move(all);
  co_return result;
}

/// A token above all that were granted for this name; 0: none is known.
asio::awaitable<Result<std::uint64_t>> token_of(std::shared_ptr<Store> store, std::string name,
                                                Plan plan) {
  Result<std::uint64_t> result;
  for (int i = 0; i < kMostReadings; ++i) {
    auto request = one_try(*store, name);
    request.token_may_go_back = true;
    request.policy = store->name() == plan.to
                         ? target_claims(*store, {plan.name, plan.id, {}}, coordinator_id(plan.id))
                         : source_claims(*store, coordinator_id(plan.id));
    auto locked = co_await await_lock(store, std::move(request));
    if (!locked.error) {
      result.value = locked.handle.token().value_or(0);
      co_return result;
    }
    if (locked.error != errc::timed_out) {
      locked.failure.error = locked.error;
      result.failure = failure_of(*store, locked.failure);
      co_return result;
    }
    const auto status = co_await store->backend().inspect(name, request_deadline(*store));
    if (!status.value) {
      result.failure = failure_of(*store, status.failure);
      co_return result;
    }
    result.value = status.value->token.value_or(0);
    if (status.value->held && status.value->token) co_return result;
  }
  co_return result;
}

std::vector<std::string> alarms_of(const DualStatus& status) {
  std::vector<std::string> alarms;
  if (!status.window) return alarms;
  const auto& window = *status.window;
  for (const auto& stranger : status.strangers) {
    if (stranger.waits) continue;
    if (stranger.store == status.plan.to && window.lo == 0) {
      alarms.push_back(fmt::format("{}, while programs of phase 0 lock '{}' alone",
                                   describe(stranger), status.plan.from));
    }
    if (stranger.store == status.plan.from && window.hi == kLastPhase) {
      alarms.push_back(fmt::format("{}, while programs of phase 2 lock '{}' alone",
                                   describe(stranger), status.plan.to));
    }
  }
  return alarms;
}

}  // namespace

std::string describe(const Stranger& stranger) {
  const bool unknown = stranger.owner.pid == 0 && stranger.owner.id.empty();
  return fmt::format("{} {} '{}' in '{}' and is not registered",
                     unknown ? std::string("somebody") : describe(stranger.owner),
                     stranger.waits ? "waits for" : "holds", stranger.lock, stranger.store);
}

KnownPrograms known_programs(const Window& window) {
  KnownPrograms known{coordinator_id(window.plan_id)};
  for (const auto& program : window.programs) known.push_back(program.id);
  return known;
}

asio::awaitable<StrangersFound> strangers_in(std::shared_ptr<Store> store, Plan plan,
                                             KnownPrograms known) {
  StrangersFound found;
  const auto locks = co_await locks_in(store, plan);
  found.failure = locks.failure;
  if (!locks.value) co_return found;
  found.unlisted = !plan.patterns.empty() && !store->backend().capabilities().can_list;
  for (const auto& lock : *locks.value) {
    add_strangers(lock, store->name(), known, found.strangers);
  }
  co_return found;
}

asio::awaitable<DualStatus> dual_survey(DualStores stores, Plan plan) {
  DualStatus status;
  status.plan = std::move(plan);
  // The claims first: whoever has one registered before.
  std::vector<std::pair<std::string, std::vector<LockStatus>>> claims;
  for (const auto& store : {stores.from, stores.to}) {
    auto locks = co_await locks_in(store, status.plan);
    if (locks.value) {
      claims.emplace_back(store->name(), std::move(*locks.value));
    } else {
      status.alarms.push_back(locks.failure.text);
    }
  }
  WindowNote note(stores.window, status.plan.name);
  auto look = co_await note.read();
  if (look.failure.error) {
    status.alarms.push_back(look.failure.text);
    co_return status;
  }
  status.window = std::move(look.window);
  if (!status.window) {
    status.alarms.push_back(
        fmt::format("the store '{0}' has lost the window: nobody can lock; restore it with `dlock "
                    "migrate start "
                    "{1} --at LO,HI`",
                    stores.window->name(), status.plan.name));
    co_return status;
  }
  status.finished = status.window->finished;
  status.laggards = laggards(*status.window);
  const auto known = known_programs(*status.window);
  for (const auto& [store, locks] : claims) {
    for (const auto& lock : locks) {
      if (!status.finished) add_strangers(lock, store, known, status.strangers);
    }
  }
  for (auto& alarm : alarms_of(status)) status.alarms.push_back(std::move(alarm));
  status.next = next_step(status);
  co_return status;
}

std::string next_step(const DualStatus& status) {
  if (!status.window) return "restore the window";
  const auto& window = *status.window;
  const auto& plan = status.plan;
  const auto decision = decide(Goal::advance, window);
  if (window.finished) {
    return fmt::format("nothing: it is finished; write `store: {}`, program by program", plan.to);
  }
  if (decision.action == WindowAction::nothing) {
    return fmt::format("{}, or go back with `dlock migrate rollback {}`", decision.why, plan.name);
  }
  std::string text = fmt::format("`dlock migrate advance {}{}`: {}", plan.name,
                                 needs_legacy_gone(decision.action, window) ? " --legacy-gone" : "",
                                 action_text(decision.action, window));
  if (is_opening(decision.action) && !status.laggards.empty()) {
    text += fmt::format("; it waits for {} of a phase that is closed, the first is {}",
                        status.laggards.size(), describe(status.laggards.front()));
  } else if (!is_opening(decision.action)) {
    const auto phase = phase_of(decision.action, window);
    const auto behind =
        std::count_if(window.programs.begin(), window.programs.end(),
                      [&](const Program& program) { return program.phase == phase; });
    text += fmt::format("; {} of {} programs have `phase: {}` still", behind,
                        window.programs.size(), phase);
  }
  return text;
}

asio::awaitable<Result<std::vector<std::string>>> sealed_places(DualStores stores,
                                                                std::vector<std::string> names) {
  Result<std::vector<std::string>> result;
  std::vector<std::string> sealed;
  for (const auto& store : {stores.from, stores.to}) {
    result.failure = co_await store->connected();
    if (result.failure.error) co_return result;
    const bool has_records = store->backend().capabilities().can_seal;
    for (std::size_t i = 0; has_records && i < names.size(); ++i) {
      const auto answer =
          co_await store->backend().migration().record(names[i], request_deadline(*store));
      if (answer.status != RecordStatus::done) {
        result.failure = failure_of(*store, answer.failure);
        co_return result;
      }
      if (!answer.found) continue;
      const auto record = parse_record(*answer.found);
      sealed.push_back(fmt::format(
          "'{}': the record of plan '{}' stands in its place in the store '{}'; a lock that mode "
          "move has moved cannot be moved in mode dual{}",
          names[i], record ? record->plan : "?", store->name(),
          record && record->state != MoveState::final_ ? ": finish that plan or roll it back first"
                                                       : ": go on with a plan of mode move"));
    }
  }
  result.value = std::move(sealed);
  co_return result;
}

asio::awaitable<Result<std::uint64_t>> highest_token(DualStores stores, Plan plan) {
  Result<std::uint64_t> result;
  std::uint64_t highest = 0;
  for (const auto& store : {stores.from, stores.to}) {
    const auto locks = co_await locks_in(store, plan);
    if (!locks.value) {
      result.failure = locks.failure;
      co_return result;
    }
    for (const auto& lock : *locks.value) highest = std::max(highest, lock.token.value_or(0));
    for (const auto& name : plan.names) {
      const auto token = co_await token_of(store, name, plan);
      if (!token.value) {
        result.failure = token.failure;
        co_return result;
      }
      highest = std::max(highest, *token.value);
    }
  }
  result.value = highest;
  co_return result;
}

}  // namespace dlock::core::migration
