// SPDX-License-Identifier: Apache-2.0
#include "migration/policy/incoming_plans.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "dlock/spi/record_format.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

// A reading that failed is tried again as a claim would be, unless it is hopeless.
Failure failure_in(const RecordAnswer& answer) {
  if (answer.status == RecordStatus::failed) return answer.failure;
  if (portable(answer.failure.error) == errc::unavailable) return answer.failure;
  return make_failure(errc::unavailable, answer.failure.text);
}

}  // namespace

asio::awaitable<Failure> IncomingPlans::read(TimePoint deadline) {
  const auto begun = env_.now();
  // Where no claim can be raised above a floor, no plan can have come.
  if (!backend_.capabilities().can_raise) {
    read_at_ = begun;
    co_return Failure{};
  }
  const auto index = co_await backend_.migration().note(std::string(kPlansIn), deadline);
  if (index.status == RecordStatus::failed &&
      portable(index.failure.error) == errc::not_supported) {
    read_at_ = begun;
    co_return Failure{};
  }
  if (index.status != RecordStatus::done) co_return failure_in(index);
  std::map<std::string, Plan> unfinished;
  std::map<std::string, std::string> unread;
  std::vector<std::string> homes;
  std::string unreadable;
  const auto entries = parse_list(index.found.value_or(std::string()), &unreadable);
  if (!entries) {
    const bool is_newer = format_of(*index.found, kListStamp) != 0;
    co_return make_failure(
        is_newer ? errc::newer_format : errc::protocol,
        fmt::format("the list of plans '{}' cannot be read: {}", kPlansIn, unreadable));
  }
  for (const auto& entry : *entries) {
    const auto name = plan_of_entry(entry);
    if (is_finished_entry(entry)) {
      homes.push_back(name);
      continue;
    }
    const auto note = co_await backend_.migration().note(plan_key(name), deadline);
    if (note.status != RecordStatus::done) co_return failure_in(note);
    std::string why = "it is gone";
    std::optional<Plan> plan;
    if (note.found) plan = parse_plan(*note.found, &why);
    if (plan) {
      unfinished.emplace(name, std::move(*plan));
    } else {
      unread.emplace(name, why);
    }
  }
  auto failure = co_await read_homes(std::move(homes), deadline);
  if (failure.error) co_return failure;
  unfinished_ = std::move(unfinished);
  unread_ = std::move(unread);
  read_at_ = begun;
  co_return Failure{};
}

asio::awaitable<Failure> IncomingPlans::read_homes(std::vector<std::string> plans,
                                                   TimePoint deadline) {
  for (const auto& name : plans) {
    if (finished_.contains(name)) continue;
    const auto note = co_await backend_.migration().note(home_key(name), deadline);
    if (note.status != RecordStatus::done) co_return failure_in(note);
    std::string why = "it is gone";
    std::optional<Plan> plan;
    if (note.found) plan = parse_plan(*note.found, &why);
    if (!plan) {
      co_return make_failure(
          errc::config_unsafe,
          fmt::format("the certificate of plan '{}', which has come here, cannot be read: {}; run "
                      "`dlock migrate finish {} --all` again, which writes it anew",
                      name, why, name));
    }
    finished_.emplace(name, std::move(*plan));
  }
  co_return Failure{};
}

std::uint64_t IncomingPlans::floor(std::string_view name) const {
  std::uint64_t floor = 0;
  for (const auto& [plan_name, plan] : finished_) {
    if (plan.has(name)) floor = std::max(floor, plan.floor);
  }
  return floor;
}

std::uint64_t IncomingPlans::highest_floor() const {
  std::uint64_t floor = 0;
  for (const auto& [plan_name, plan] : finished_) floor = std::max(floor, plan.floor);
  return floor;
}

std::optional<std::uint64_t> IncomingPlans::opens(std::string_view name,
                                                  const std::string& record) const {
  const auto there = parse_record(record);
  if (!there) return std::nullopt;
  for (const auto& [plan_name, plan] : finished_) {
    const bool closed = plan.has(name) && is_closed(*there, plan.from);
    if (closed && there->gen.flip <= plan.floor) return floor(name);
  }
  return std::nullopt;
}

Failure IncomingPlans::admit(std::string_view name, std::string_view store) const {
  for (const auto& [plan_name, plan] : unfinished_) {
    if (!plan.has(name)) continue;
    const auto line = route_line(name, plan.from, store, plan_name, plan.gate);
    return make_failure(
        errc::config_unsafe,
        fmt::format("plan '{}' is moving it from the store '{}' to '{}' and is not finished: its "
                    "holder may still be in '{}'; write `{}` below `locks:`, or run `dlock migrate "
                    "finish {}{}`",
                    plan_name, plan.from, store, plan.from, line, plan_name,
                    plan.is_leased() ? "" : " --all"));
  }
  // Which names it has is not known: none may be locked.
  for (const auto& [plan_name, why] : unread_) {
    return make_failure(
        errc::config_unsafe,
        fmt::format("plan '{}' comes to the store '{}', but its note there cannot be read: {}; run "
                    "`dlock migrate start {}` again, which writes it anew",
                    plan_name, store, why, plan_name));
  }
  return {};
}

asio::awaitable<Failure> IncomingPlans::check_id(std::string plan, std::string id,
                                                 std::string store, TimePoint deadline) {
  const auto known = ids_.find(plan);
  if (known != ids_.end() && known->second == id) co_return Failure{};
  const auto note = co_await backend_.migration().note(plan_key(plan), deadline);
  if (note.status != RecordStatus::done) co_return failure_in(note);
  std::optional<Plan> found;
  if (note.found) found = parse_plan(*note.found);
  if (auto newer = note.found ? newer_plan(*note.found) : std::string(); !newer.empty()) {
    co_return make_failure(errc::newer_format,
                           fmt::format("the note of plan '{}' in the store '{}' cannot be read: {}",
                                       plan, store, newer));
  }
  if (found && found->id == id) {
    ids_[plan] = id;
    co_return Failure{};
  }
  co_return make_failure(
      errc::config_unsafe,
      fmt::format("the store '{}' of this configuration {} the plan '{}' as it was started: it is "
                  "another store than the one that the plan moves to, or it has lost its notes; "
                  "correct its url, or run `dlock migrate start {}` again",
                  store, found ? "does not have" : "does not know", plan, plan));
}

}  // namespace dlock::core::migration
