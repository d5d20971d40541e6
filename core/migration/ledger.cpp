// SPDX-License-Identifier: Apache-2.0
#include "core/migration/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace dlock::core::migration {
namespace {

constexpr int kMostTries = 20;

Failure refuse(std::string text) { return make_failure(errc::config_unsafe, std::move(text)); }

/// Of an answer that is neither done nor a conflict.
Failure failure_of(const Store& store, const RecordAnswer& answer) {
  const auto text =
      answer.failure.text.empty() ? answer.failure.error.message() : answer.failure.text;
  return {answer.failure.error, fmt::format("the store '{}': {}", store.name(), text)};
}

Failure out_of_tries(const Store& store) {
  return make_failure(
      errc::unavailable,
      fmt::format("the store '{}': others write its notes all the time", store.name()));
}

bool same_but_id(Plan one, const Plan& other) {
  one.id = other.id;
  return one == other;
}

}  // namespace

asio::awaitable<RecordAnswer> Ledger::read(std::shared_ptr<Store> store, std::string key) {
  RecordAnswer answer;
  answer.failure = co_await store->connected();
  if (answer.failure.error) co_return answer;
  const auto deadline = store->env().now() + store->request_timeout();
  answer = co_await store->backend().note(std::move(key), deadline);
  co_return answer;
}

asio::awaitable<std::optional<Failure>> Ledger::set(std::shared_ptr<Store> store, std::string key,
                                                    std::optional<std::string> from,
                                                    std::optional<std::string> to) {
  std::optional<Failure> outcome;
  const auto deadline = store->env().now() + store->request_timeout();
  const auto answer =
      co_await store->backend().set_note(std::move(key), std::move(from), std::move(to), deadline);
  if (answer.status == RecordStatus::done) {
    outcome = Failure{};
  } else if (answer.status == RecordStatus::unavailable || answer.status == RecordStatus::failed) {
    outcome = failure_of(*store, answer);
  }
  co_return outcome;
}

asio::awaitable<Failure> Ledger::edit(std::shared_ptr<Store> store, std::string key, Edit edit) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto now_there = co_await read(store, key);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    const auto old_text = now_there.found.value_or(std::string());
    const auto new_text = list_text(edit(parse_list(old_text)));
    if (new_text == old_text) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> to;
    if (!new_text.empty()) to = new_text;
    const auto outcome = co_await set(store, key, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_tries(*store);
}

asio::awaitable<Failure> Ledger::write(std::shared_ptr<Store> store, std::string key,
                                       std::string text) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto now_there = co_await read(store, key);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    if (now_there.found && *now_there.found == text) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> to = text;
    const auto outcome = co_await set(store, key, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_tries(*store);
}

asio::awaitable<Failure> Ledger::erase(std::shared_ptr<Store> store, std::string key) {
  Edit nothing = [](const std::vector<std::string>&) { return std::vector<std::string>(); };
  auto failure = co_await edit(std::move(store), std::move(key), std::move(nothing));
  co_return failure;
}

asio::awaitable<Ledger::Found> Ledger::find(std::string plan, bool ask_target) {
  Found found;
  const auto here = co_await read(from_, plan_key(plan));
  if (here.status != RecordStatus::done) {
    found.failure = failure_of(*from_, here);
    co_return found;
  }
  if (here.found) {
    std::string why;
    found.plan = parse_plan(*here.found, &why);
    if (!found.plan) {
      found.failure = make_failure(
          errc::protocol, fmt::format("the store '{}': the note of plan '{}' cannot be read: {}",
                                      from_->name(), plan, why));
      co_return found;
    }
  }
  if (!ask_target) co_return found;
  const auto home = co_await read(to_, home_key(plan));
  if (home.status != RecordStatus::done) {
    found.failure = failure_of(*to_, home);
    co_return found;
  }
  found.finished = home.found.has_value();
  const auto moved = co_await read(to_, moved_key(plan));
  if (moved.status == RecordStatus::done) {
    found.moved = parse_list(moved.found.value_or(std::string()));
  }
  co_return found;
}

asio::awaitable<Failure> Ledger::publish(Plan plan) {
  const auto home = co_await read(to_, home_key(plan.name));
  if (home.status != RecordStatus::done) co_return failure_of(*to_, home);
  if (home.found) {
    co_return refuse(
        fmt::format("plan '{}' was finished before; give this one another name", plan.name));
  }
  auto failure = co_await settle_id(plan);
  if (failure.error) co_return failure;
  failure = co_await write(to_, plan_key(plan.name), to_text(plan));
  if (failure.error) co_return failure;
  std::string list(kPlansIn);
  failure = co_await enlist(to_, list, plan);
  if (failure.error) co_return failure;
  list = kPlansOut;
  failure = co_await enlist(from_, list, plan);
  co_return failure;
}

// Who writes it into the source first decides on its id; all others take that over.
asio::awaitable<Failure> Ledger::settle_id(Plan& plan) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto here = co_await read(from_, plan_key(plan.name));
    if (here.status != RecordStatus::done) co_return failure_of(*from_, here);
    const auto there = co_await read(to_, plan_key(plan.name));
    if (there.status != RecordStatus::done) co_return failure_of(*to_, there);
    const auto& known = here.found ? here.found : there.found;
    if (known) {
      const auto old = parse_plan(*known);
      if (!old || !same_but_id(plan, *old)) {
        co_return refuse(
            fmt::format("there is a plan '{}' already, about something else; withdraw "
                        "that one, or give this one another name",
                        plan.name));
      }
      plan.id = old->id;
    }
    if (here.found) co_return Failure{};
    std::optional<std::string> from;
    std::optional<std::string> to = to_text(plan);
    const auto outcome = co_await set(from_, plan_key(plan.name), std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_tries(*from_);
}

asio::awaitable<Failure> Ledger::enlist(std::shared_ptr<Store> store, std::string list, Plan plan) {
  // In the one list it is written, in the other it must not stand in the way either.
  const std::string other(list == kPlansIn ? kPlansOut : kPlansIn);
  for (int i = 0; i < kMostTries; ++i) {
    const auto beside = co_await read(store, other);
    if (beside.status != RecordStatus::done) co_return failure_of(*store, beside);
    const auto now_there = co_await read(store, list);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    auto plans = parse_list(now_there.found.value_or(std::string()));
    auto all = parse_list(beside.found.value_or(std::string()));
    all.insert(all.end(), plans.begin(), plans.end());
    const auto failure = co_await overlap(store, std::move(all), plan);
    if (failure.error) co_return failure;
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> to = list_text(with_entry(std::move(plans), plan.name));
    if (from == to) co_return Failure{};
    const auto outcome = co_await set(store, list, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_tries(*store);
}

asio::awaitable<Failure> Ledger::overlap(std::shared_ptr<Store> store,
                                         std::vector<std::string> plans, Plan plan) {
  for (const auto& name : plans) {
    if (name == plan.name) continue;
    const auto note = co_await read(store, plan_key(name));
    if (note.status != RecordStatus::done) co_return failure_of(*store, note);
    std::optional<Plan> other;
    if (note.found) other = parse_plan(*note.found);
    if (!other) {
      co_return refuse(
          fmt::format("the store '{}' has an unfinished plan '{}' whose note cannot be "
                      "read; finish or withdraw it first",
                      store->name(), name));
    }
    const auto common = common_names(plan, *other);
    if (!common) continue;
    co_return refuse(
        fmt::format("'{}' belongs to the unfinished plan '{}' (from '{}' to '{}'); "
                    "finish or withdraw that one first",
                    *common, name, other->from, other->to));
  }
  co_return Failure{};
}

// The certificate first: without it, and out of the lists, nobody would know that it is over.
asio::awaitable<Failure> Ledger::certify(Plan plan) {
  auto failure = co_await write(to_, home_key(plan.name), to_text(plan));
  if (failure.error) co_return failure;
  failure = co_await unlist(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> Ledger::unlist(Plan plan) {
  Edit leave = [name = plan.name](std::vector<std::string> plans) {
    return without_entry(std::move(plans), name);
  };
  std::string list(kPlansIn);
  auto failure = co_await edit(to_, list, leave);
  if (failure.error) co_return failure;
  list = kPlansOut;
  failure = co_await edit(from_, list, leave);
  co_return failure;
}

asio::awaitable<Failure> Ledger::withdraw(Plan plan) {
  auto failure = co_await unlist(plan);
  if (failure.error) co_return failure;
  failure = co_await erase(to_, moved_key(plan.name));
  if (failure.error) co_return failure;
  failure = co_await erase(to_, plan_key(plan.name));
  if (failure.error) co_return failure;
  failure = co_await erase(from_, plan_key(plan.name));
  co_return failure;
}

asio::awaitable<Failure> Ledger::note_moved(std::string plan, std::vector<std::string> moved,
                                            std::vector<std::string> back) {
  Edit change = [moved = std::move(moved), back = std::move(back)](std::vector<std::string> names) {
    names.insert(names.end(), moved.begin(), moved.end());
    for (const auto& name : back) names = without_entry(std::move(names), name);
    return names;
  };
  auto failure = co_await edit(to_, moved_key(plan), std::move(change));
  co_return failure;
}

}  // namespace dlock::core::migration
