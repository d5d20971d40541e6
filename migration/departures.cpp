// SPDX-License-Identifier: Apache-2.0
#include "migration/departures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/routes.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kPlansLeft = "plans-left";
constexpr std::string_view kPlansCame = "plans-came";

/// Where one end of the finished plans lists them, and where it has their texts.
struct Shelf {
  std::string_view list;
  std::string (*key)(std::string_view plan);
};
constexpr Shelf kLeft{kPlansLeft, plan_key};
constexpr Shelf kCame{kPlansCame, home_key};

/// Those of a list whose text is there: a store may have lost it.
asio::awaitable<Result<std::vector<Plan>>> finished_plans(Ledger& ledger,
                                                          std::shared_ptr<Store> store,
                                                          Shelf shelf) {
  Result<std::vector<Plan>> result;
  const auto list = co_await ledger.read(store, std::string(shelf.list));
  auto names = entries_of(*store, shelf.list, list);
  if (!names.value) {
    result.failure = std::move(names.failure);
    co_return result;
  }
  std::vector<Plan> plans;
  for (const auto& name : *names.value) {
    const auto text = co_await ledger.read(store, shelf.key(name));
    if (text.status != RecordStatus::done) {
      result.failure = failure_of(*store, text);
      co_return result;
    }
    if (!text.found) continue;
    result.failure = newer_text(*store, name, text);
    if (result.failure.error) co_return result;
    if (auto plan = parse_plan(*text.found)) plans.push_back(std::move(*plan));
  }
  result.value = std::move(plans);
  co_return result;
}

bool covers(const Plan& wide, const Plan& narrow) {
  const auto has_pattern = [&](const std::string& pattern) {
    return std::any_of(wide.patterns.begin(), wide.patterns.end(),
                       [&](const std::string& one) { return pattern_covers(one, pattern); });
  };
  return std::all_of(narrow.patterns.begin(), narrow.patterns.end(), has_pattern);
}

/// Takes those out that went the other way and are brought back by this plan.
asio::awaitable<Failure> forget(Ledger& ledger, std::shared_ptr<Store> store, Shelf shelf,
                                Plan plan) {
  const auto plans = co_await finished_plans(ledger, store, shelf);
  if (!plans.value) co_return plans.failure;
  std::vector<std::string> back;
  for (const auto& one : *plans.value) {
    if (one.from == plan.to && one.to == plan.from && covers(plan, one)) back.push_back(one.name);
  }
  if (back.empty()) co_return Failure{};
  Ledger::Edit leave = [back = std::move(back)](std::vector<std::string> names) {
    for (const auto& name : back) names = without_entry(std::move(names), name);
    return names;
  };
  auto failure = co_await ledger.edit(store, std::string(shelf.list), std::move(leave));
  co_return failure;
}

asio::awaitable<Failure> enter(Ledger& ledger, std::shared_ptr<Store> store, Shelf shelf,
                               std::string plan) {
  Ledger::Edit add = [plan = std::move(plan)](std::vector<std::string> names) {
    return with_entry(std::move(names), plan);
  };
  auto failure = co_await ledger.edit(store, std::string(shelf.list), std::move(add));
  co_return failure;
}

}  // namespace

asio::awaitable<Failure> Departures::objection(Plan plan) {
  Ledger ledger(from_, to_);
  for (const bool left : {true, false}) {
    const auto plans = co_await finished_plans(ledger, left ? from_ : to_, left ? kLeft : kCame);
    if (!plans.value) co_return plans.failure;
    for (const auto& other : *plans.value) {
      const auto common = common_names(plan, other);
      if (other.from != plan.from || !common) continue;
      co_return make_failure(
          errc::config_unsafe,
          fmt::format("plan '{0}' has taken '{1}' from '{2}' to '{3}' and is finished: programs "
                      "lock it in '{3}' alone, and a plan that begins in '{2}' does not meet them; "
                      "it can begin there again when a plan from '{3}' to '{2}', over the same "
                      "patterns, is finished",
                      other.name, *common, other.from, other.to));
    }
  }
  co_return Failure{};
}

asio::awaitable<Failure> Departures::note(Plan plan) {
  Ledger ledger(from_, to_);
  auto failure = co_await enter(ledger, from_, kLeft, plan.name);
  if (failure.error) co_return failure;
  failure = co_await enter(ledger, to_, kCame, plan.name);
  if (failure.error) co_return failure;
  failure = co_await forget(ledger, to_, kLeft, plan);
  if (failure.error) co_return failure;
  failure = co_await forget(ledger, from_, kCame, std::move(plan));
  co_return failure;
}

}  // namespace dlock::core::migration
