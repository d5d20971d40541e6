// SPDX-License-Identifier: Apache-2.0
#include "migration/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "dlock/spi/record_format.hpp"
#include "migration/departures.hpp"
#include "migration/gate_note.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
Failure failure_of(const Store& store, const Failure& failure) {
  const auto text = failure.text.empty() ? failure.error.message() : failure.text;
  return {failure.error, fmt::format("the store '{}': {}", store.name(), text)};
}

Failure failure_of(const Store& store, const RecordAnswer& answer) {
  return failure_of(store, answer.failure);
}

Failure out_of_writes(const Store& store) {
  return make_failure(
      errc::unavailable,
      fmt::format("the store '{}': others write its notes all the time", store.name()));
}

Failure unsafe(std::string text) { return make_failure(errc::config_unsafe, std::move(text)); }

Failure name_is_taken(const std::string& plan) {
  return unsafe(fmt::format(
      "there is a plan '{}' already, about something else; withdraw that one, or give this one "
      "another name",
      plan));
}

bool same_but_id(Plan one, const Plan& other) {
  one.id = other.id;
  return one == other;
}

Result<std::vector<std::string>> entries_of(const Store& store, std::string_view list,
                                            const RecordAnswer& note) {
  Result<std::vector<std::string>> result;
  if (note.status != RecordStatus::done) {
    result.failure = failure_of(store, note);
    return result;
  }
  std::string why;
  result.value = parse_list(note.found.value_or(std::string()), &why);
  if (!result.value) {
    const bool is_newer = format_of(*note.found, kListStamp) != 0;
    result.failure = make_failure(is_newer ? errc::newer_format : errc::protocol,
                                  fmt::format("the store '{}': the list of plans '{}' cannot be "
                                              "read: {}",
                                              store.name(), list, why));
  }
  return result;
}

Failure newer_text(const Store& store, std::string_view plan, const RecordAnswer& note) {
  const auto newer = note.found ? newer_plan(*note.found) : std::string();
  if (newer.empty()) return {};
  return make_failure(errc::newer_format,
                      fmt::format("the store '{}': the note of plan '{}' cannot be read: {}",
                                  store.name(), plan, newer));
}

asio::awaitable<RecordAnswer> Ledger::read(std::shared_ptr<Store> store, std::string key) {
  RecordAnswer answer;
  answer.failure = co_await store->connected();
  if (answer.failure.error) co_return answer;
  const auto deadline = store->env().now() + store->request_timeout();
  answer = co_await store->backend().migration().note(std::move(key), deadline);
  co_return answer;
}

asio::awaitable<std::optional<Failure>> Ledger::set(std::shared_ptr<Store> store, std::string key,
                                                    std::optional<std::string> from,
                                                    std::optional<std::string> to) {
  std::optional<Failure> outcome;
  const auto deadline = store->env().now() + store->request_timeout();
  const auto answer = co_await store->backend().migration().set_note(
      std::move(key), std::move(from), std::move(to), deadline);
  if (answer.status == RecordStatus::done) {
    outcome = Failure{};
  } else if (answer.status == RecordStatus::unavailable || answer.status == RecordStatus::failed) {
    outcome = failure_of(*store, answer);
  }
  co_return outcome;
}

asio::awaitable<Failure> Ledger::edit(std::shared_ptr<Store> store, std::string key, Edit edit) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto now_there = co_await read(store, key);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    auto entries = entries_of(*store, key, now_there);
    if (!entries.value) co_return entries.failure;
    const auto old_text = now_there.found.value_or(std::string());
    const auto new_text = list_text(edit(std::move(*entries.value)));
    if (new_text == old_text) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> to;
    if (!new_text.empty()) to = new_text;
    const auto outcome = co_await set(store, key, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
}

asio::awaitable<Failure> Ledger::write(std::shared_ptr<Store> store, std::string key,
                                       std::string text) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto now_there = co_await read(store, key);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    if (now_there.found && *now_there.found == text) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> to = text;
    const auto outcome = co_await set(store, key, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
}

asio::awaitable<Failure> Ledger::erase(std::shared_ptr<Store> store, std::string key) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto now_there = co_await read(store, key);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    if (!now_there.found) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> nothing;
    const auto outcome = co_await set(store, key, std::move(from), std::move(nothing));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
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
  auto listed = co_await is_listed(from_, std::string(kPlansOut), plan);
  if (!listed.value) {
    found.failure = listed.failure;
    co_return found;
  }
  found.listed = *listed.value;
  if (!ask_target) co_return found;
  listed = co_await is_listed(to_, std::string(kPlansIn), plan);
  if (!listed.value) {
    found.failure = listed.failure;
    co_return found;
  }
  found.listed_in_target = *listed.value;
  const auto there = co_await read(to_, plan_key(plan));
  if (there.status != RecordStatus::done) {
    found.failure = failure_of(*to_, there);
    co_return found;
  }
  found.known_in_target = there.found.has_value();
  const auto home = co_await read(to_, home_key(plan));
  if (home.status != RecordStatus::done) {
    found.failure = failure_of(*to_, home);
    co_return found;
  }
  found.finished = home.found.has_value();
  co_return found;
}

asio::awaitable<Result<bool>> Ledger::is_unfinished(std::shared_ptr<Store> store,
                                                    std::string plan) {
  Result<bool> result;
  result.value = false;
  for (const auto& list : {kPlansOut, kPlansIn}) {
    const auto note = co_await read(store, std::string(list));
    const auto entries = entries_of(*store, list, note);
    if (!entries.value) {
      result.value.reset();
      result.failure = entries.failure;
      co_return result;
    }
    for (const auto& entry : *entries.value) {
      if (!is_finished_entry(entry) && plan_of_entry(entry) == plan) result.value = true;
    }
  }
  co_return result;
}

asio::awaitable<Result<bool>> Ledger::is_finished(std::string plan) {
  Result<bool> result;
  for (const auto& store : {to_, from_}) {
    const auto home = co_await read(store, home_key(plan));
    if (home.status != RecordStatus::done) {
      result.value.reset();
      result.failure = failure_of(*store, home);
      co_return result;
    }
    result.value = home.found.has_value();
    if (*result.value) break;
  }
  co_return result;
}

asio::awaitable<Result<bool>> Ledger::is_listed(std::shared_ptr<Store> store, std::string list,
                                                std::string plan) {
  Result<bool> result;
  const auto note = co_await read(store, list);
  auto entries = entries_of(*store, list, note);
  result.failure = std::move(entries.failure);
  if (entries.value) result.value = lists_started(*entries.value, plan);
  co_return result;
}

// A plan of that name in the other direction counts, too.
asio::awaitable<Result<bool>> Ledger::is_listed_anywhere(std::string plan) {
  Result<bool> result;
  for (const auto& store : {from_, to_}) {
    for (const auto& list : {kPlansOut, kPlansIn}) {
      result = co_await is_listed(store, std::string(list), plan);
      if (!result.value || *result.value) co_return result;
    }
  }
  co_return result;
}

asio::awaitable<Failure> Ledger::is_new(Plan plan) {
  const auto over = co_await is_finished(plan.name);
  if (!over.value) co_return over.failure;
  if (*over.value) {
    co_return unsafe(
        fmt::format("plan '{}' was finished before; give this one another name", plan.name));
  }
  const auto listed = co_await is_listed_anywhere(plan.name);
  if (!listed.value) co_return listed.failure;
  // The notes of a refused or interrupted start do not count.
  if (!*listed.value) co_return Failure{};
  for (const auto& store : {from_, to_}) {
    const auto note = co_await read(store, plan_key(plan.name));
    if (note.status != RecordStatus::done) co_return failure_of(*store, note);
    if (!note.found) continue;
    const auto known = parse_plan(*note.found);
    if (!known || !same_but_id(plan, *known)) co_return name_is_taken(plan.name);
    break;  // the source's note decides
  }
  co_return Failure{};
}

asio::awaitable<Failure> Ledger::objection(Plan plan) {
  auto failure = co_await is_new(plan);
  if (failure.error) co_return failure;
  failure = co_await overlap_of_lists(to_, plan);
  if (failure.error) co_return failure;
  failure = co_await overlap_of_lists(from_, plan);
  if (failure.error) co_return failure;
  Departures departures(from_, to_);
  failure = co_await departures.objection(std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> Ledger::publish(Plan plan) {
  std::string list(kPlansOut);
  auto failure = co_await objection(plan);
  if (failure.error) co_return failure;
  failure = co_await settle_id(plan);
  if (failure.error) co_return failure;
  failure = co_await write(to_, plan_key(plan.name), to_text(plan));
  if (failure.error) co_return failure;
  failure = co_await make_gate(plan);
  if (failure.error) co_return failure;
  failure = co_await enlist(from_, list, pending_entry(plan), plan);
  if (!failure.error) {
    list = kPlansIn;
    failure = co_await enlist(to_, list, started_entry(plan), plan);
  }
  // Each list is one compare-and-set. Two plans in opposite directions see each other only after
  // both have written.
  if (!failure.error) failure = co_await objection(plan);
  if (failure.error == errc::config_unsafe) {
    const auto left = co_await give_up_start(plan);
    if (left.error) co_return left;
  }
  if (failure.error) co_return failure;
  failure = co_await put_in_effect(std::move(plan));
  co_return failure;
}

// A plan that another start has put into effect stays in effect.
asio::awaitable<Failure> Ledger::give_up_start(Plan plan) {
  const std::string list(kPlansOut);
  Edit leave = [entry = pending_entry(plan)](std::vector<std::string> plans) {
    return without_entry(std::move(plans), entry);
  };
  auto failure = co_await edit(from_, list, std::move(leave));
  if (failure.error) co_return failure;
  const auto listed = co_await is_listed(from_, list, plan.name);
  if (!listed.value || *listed.value) co_return listed.failure;
  failure = co_await take_out(to_, std::string(kPlansIn), std::move(plan));
  co_return failure;
}

// A command that gives up a start of the same plan removes it from both lists. A source that
// forgets may have lost it.
asio::awaitable<Failure> Ledger::put_in_effect(Plan plan) {
  auto gone = std::make_shared<bool>(false);
  Edit confirm = [gone, plan](std::vector<std::string> plans) {
    const auto is_ours = [&](const std::string& entry) { return is_about(entry, plan); };
    *gone = std::none_of(plans.begin(), plans.end(), is_ours);
    if (*gone) return plans;
    std::erase_if(plans, is_ours);
    return with_entry(std::move(plans), started_entry(plan));
  };
  auto failure = co_await edit(from_, std::string(kPlansOut), std::move(confirm));
  if (failure.error) co_return failure;
  if (*gone) {
    co_return make_failure(
        errc::unavailable,
        fmt::format(
            "the start of plan '{0}' is not in the list of the store '{1}' any more: another "
            "command has given it up, or the store has lost it; run `dlock migrate start "
            "{0}` again",
            plan.name, from_->name()));
  }
  failure = co_await enlist(to_, std::string(kPlansIn), started_entry(plan), plan);
  co_return failure;
}

// An OPEN gate has the same effect as none, so it is written before the lists. An earlier plan of
// that name leaves ENDED, and a refused start leaves OPEN.
asio::awaitable<Failure> Ledger::make_gate(Plan plan) {
  if (plan.is_leased()) co_return Failure{};
  GateNote note(from_, plan.name);
  auto seen = co_await note.read();
  for (int i = 0; i < kMostWrites; ++i) {
    if (seen.failure.error) co_return seen.failure;
    if (seen.gate && seen.gate->plan_id == plan.id && seen.gate->state != GateState::ended) {
      co_return Failure{};
    }
    const bool over = !seen.gate || seen.gate->state == GateState::ended;
    if (!over && seen.gate->state != GateState::open) {
      co_return unsafe(
          fmt::format("the store '{}' has the gate of another plan '{}', which is {}; "
                      "give this one another name",
                      from_->name(), plan.name, to_string(seen.gate->state)));
    }
    const auto gate = opened_gate(plan, seen.gate, from_->env().wall_clock_ms());
    seen = co_await note.turn(seen, gate);
  }
  co_return out_of_writes(*from_);
}

// The first command that writes the text into the source decides on the id.
asio::awaitable<Failure> Ledger::settle_id(Plan& plan) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto here = co_await read(from_, plan_key(plan.name));
    if (here.status != RecordStatus::done) co_return failure_of(*from_, here);
    const auto there = co_await read(to_, plan_key(plan.name));
    if (there.status != RecordStatus::done) co_return failure_of(*to_, there);
    const auto& known = here.found ? here.found : there.found;
    bool is_ours = false;
    auto newer = newer_text(*from_, plan.name, here);
    if (!newer.error) newer = newer_text(*to_, plan.name, there);
    if (newer.error) co_return newer;
    if (known) {
      const auto old = parse_plan(*known);
      const bool same = old && same_but_id(plan, *old);
      is_ours = same;
      if (same && !plan.is_leased()) {
        // A withdrawn start is over, even if a late command has written its text again.
        GateNote note(from_, plan.name);
        const auto seen = co_await note.read();
        if (seen.failure.error) co_return seen.failure;
        const bool over = seen.gate && seen.gate->state == GateState::ended;
        is_ours = !over || seen.gate->plan_id != old->id;
      }
      if (is_ours) {
        plan.id = old->id;
      } else {
        // During a withdrawal the plan is in effect until the source's list loses it.
        Result<bool> listed;
        if (same) {
          listed = co_await is_listed(from_, std::string(kPlansOut), plan.name);
        } else {
          listed = co_await is_listed_anywhere(plan.name);
        }
        if (!listed.value) co_return listed.failure;
        if (*listed.value) co_return name_is_taken(plan.name);
      }
    }
    if (here.found && is_ours) co_return Failure{};
    std::optional<std::string> from = here.found;
    std::optional<std::string> to = to_text(plan);
    const auto outcome = co_await set(from_, plan_key(plan.name), std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*from_);
}

asio::awaitable<Failure> Ledger::enlist(std::shared_ptr<Store> store, std::string list,
                                        std::string entry, Plan plan) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto now_there = co_await read(store, list);
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    const auto failure = co_await overlap_of_lists(store, plan);
    if (failure.error) co_return failure;
    auto entries = entries_of(*store, list, now_there);
    if (!entries.value) co_return entries.failure;
    auto plans = std::move(*entries.value);
    std::optional<std::string> from = now_there.found;
    const bool is_there = std::any_of(plans.begin(), plans.end(), [&](const std::string& one) {
      return !is_pending_entry(one) && is_about(one, plan);
    });
    // Entries of another start of this plan.
    std::erase_if(plans, [&](const std::string& one) {
      return !is_finished_entry(one) && plan_of_entry(one) == plan.name;
    });
    std::optional<std::string> to = list_text(with_entry(std::move(plans), entry));
    if (is_there || from == to) co_return Failure{};
    const auto outcome = co_await set(store, list, std::move(from), std::move(to));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
}

// A plan in either list of the store can have a name in common.
asio::awaitable<Failure> Ledger::overlap_of_lists(std::shared_ptr<Store> store, Plan plan) {
  std::vector<std::string> all;
  for (const auto& list : {kPlansIn, kPlansOut}) {
    const auto note = co_await read(store, std::string(list));
    const auto plans = entries_of(*store, list, note);
    if (!plans.value) co_return plans.failure;
    all.insert(all.end(), plans.value->begin(), plans.value->end());
  }
  auto failure = co_await overlap(std::move(store), std::move(all), std::move(plan));
  co_return failure;
}

asio::awaitable<Failure> Ledger::overlap(std::shared_ptr<Store> store,
                                         std::vector<std::string> plans, Plan plan) {
  for (const auto& entry : plans) {
    const auto name = plan_of_entry(entry);
    if (name == plan.name || is_finished_entry(entry)) continue;
    const auto note = co_await read(store, plan_key(name));
    if (note.status != RecordStatus::done) co_return failure_of(*store, note);
    std::optional<Plan> other;
    if (note.found) other = parse_plan(*note.found);
    if (!other) {
      // A withdrawal removes the entries of the lists before the text.
      const auto stays = co_await is_unfinished(store, name);
      if (!stays.value) co_return stays.failure;
      if (!*stays.value) continue;
      co_return unsafe(
          fmt::format("the store '{}' has an unfinished plan '{}' whose note cannot be "
                      "read; finish or withdraw it first",
                      store->name(), name));
    }
    const auto common = common_names(plan, *other);
    if (!common) continue;
    if (is_pending_entry(entry)) {
      const auto over = co_await is_finished(name);
      if (!over.value) co_return over.failure;
      if (*over.value) continue;
      co_return unsafe(fmt::format(
          "'{0}' belongs to plan '{1}' (from '{2}' to '{3}'), whose start has not come to its end; "
          "run `dlock migrate start {1}` again, and withdraw it then if it is not wanted",
          *common, name, other->from, other->to));
    }
    co_return unsafe(
        fmt::format("'{}' belongs to the unfinished plan '{}' (from '{}' to '{}'); "
                    "finish or withdraw that one first",
                    *common, name, other->from, other->to));
  }
  co_return Failure{};
}

// The certificate is written before the lists change: it is the only record of the plan's end.
asio::awaitable<Failure> Ledger::certify(Plan plan) {
  auto failure = co_await write(to_, home_key(plan.name), to_text(plan));
  if (failure.error) co_return failure;
  const auto listed = co_await is_listed_anywhere(plan.name);
  if (!listed.value) co_return listed.failure;
  // A repeated finish writes nothing: another plan may have moved the locks back since.
  if (!*listed.value) co_return Failure{};
  Departures departures(from_, to_);
  failure = co_await departures.note(plan);
  if (failure.error) co_return failure;
  failure = co_await list_finished(plan);
  if (failure.error) co_return failure;
  failure = co_await unlist(std::move(plan));
  co_return failure;
}

// One write replaces the entries: a client that knows the target alone is refused before it, and
// uses the floor after it.
asio::awaitable<Failure> Ledger::list_finished(Plan plan) {
  Edit edit_list = [plan](std::vector<std::string> plans) {
    std::erase_if(plans, [&](const std::string& entry) { return is_about(entry, plan); });
    return with_entry(std::move(plans), finished_entry(plan.name));
  };
  auto failure = co_await edit(to_, std::string(kPlansIn), std::move(edit_list));
  co_return failure;
}

asio::awaitable<Failure> Ledger::unlist(Plan plan) {
  std::string list(kPlansIn);
  auto failure = co_await take_out(to_, list, plan);
  if (failure.error) co_return failure;
  list = kPlansOut;
  failure = co_await take_out(from_, list, std::move(plan));
  co_return failure;
}

// Keeps the entry of another start of that name, which may be in effect.
asio::awaitable<Failure> Ledger::take_out(std::shared_ptr<Store> store, std::string list,
                                          Plan plan) {
  Edit leave = [plan = std::move(plan)](std::vector<std::string> plans) {
    std::erase_if(plans, [&](const std::string& entry) { return is_about(entry, plan); });
    return plans;
  };
  auto failure = co_await edit(std::move(store), std::move(list), std::move(leave));
  co_return failure;
}

asio::awaitable<Failure> Ledger::withdraw(Plan plan) {
  auto failure = co_await unlist(plan);
  if (failure.error) co_return failure;
  failure = co_await erase_text(to_, plan);
  if (failure.error) co_return failure;
  failure = co_await erase_text(from_, plan);
  co_return failure;
}

// Keeps the text of another start of that name, which may be in progress.
asio::awaitable<Failure> Ledger::erase_text(std::shared_ptr<Store> store, Plan plan) {
  for (int i = 0; i < kMostWrites; ++i) {
    const auto now_there = co_await read(store, plan_key(plan.name));
    if (now_there.status != RecordStatus::done) co_return failure_of(*store, now_there);
    auto newer = newer_text(*store, plan.name, now_there);
    if (newer.error) co_return newer;
    std::optional<Plan> text;
    if (now_there.found) text = parse_plan(*now_there.found);
    if (!now_there.found || (text && text->id != plan.id)) co_return Failure{};
    std::optional<std::string> from = now_there.found;
    std::optional<std::string> nothing;
    const auto outcome = co_await set(store, plan_key(plan.name), std::move(from), nothing);
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
}

}  // namespace dlock::core::migration
