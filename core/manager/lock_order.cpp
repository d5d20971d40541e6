// SPDX-License-Identifier: Apache-2.0
#include "core/manager/lock_order.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace dlock::core {

namespace {

/// A search follows at most this number of names. A program with longer chains has been warned of
/// shorter ones.
constexpr std::size_t kMostFollowed = 256;

std::string said_of(const Call& call) {
  if (call.file == nullptr) return fmt::format("by {}", call.what);
  return fmt::format("by {} at {}:{}", call.what, call.file, call.line);
}

}  // namespace

void LockOrder::note(const std::string& first, const Call& first_call, const std::string& second,
                     const Call& second_call) {
  if (first == second) return;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (pairs_.find(NamesView(first, second)) != pairs_.end()) return;
    make_room();
    const bool may_warn = warnings_ <= kMostWarnings;
    const auto way_back = may_warn ? chain(second, first) : std::vector<Pairs::const_iterator>{};
    const auto added = remember(
        {first, second},
        {said_of(first_call), fmt::format("{}, thread {}", said_of(second_call), ::gettid())});
    if (way_back.empty()) return;
    if (++warnings_ > kMostWarnings) {
      text = "more locks are taken in opposite orders; they are not told any more";
    } else {
      const auto step = [](const auto& pair) {
        return fmt::format("'{}' ({}) inside '{}' ({})", pair->first.second, pair->second.second,
                           pair->first.first, pair->second.first);
      };
      text = fmt::format(
          "locks are taken in opposite orders, so that threads can wait for each "
          "other for ever: {}",
          step(added));
      for (const auto& pair : way_back) text += "; before that " + step(pair);
      text += "; acquire them in one order, or together: LockManager::lock_all()";
    }
  }
  tell_(text);
}

void LockOrder::make_room() {
  if (oldest_.size() < kMostPairs) return;
  pairs_.erase(oldest_.front());
  oldest_.pop_front();
}

LockOrder::Pairs::const_iterator LockOrder::remember(Names names, Seen seen) {
  const auto added = pairs_.emplace(std::move(names), std::move(seen)).first;
  try {
    oldest_.push_back(added);
  } catch (...) {
    pairs_.erase(added);
    throw;
  }
  return added;
}

/// The shortest one; empty: there is none.
std::vector<LockOrder::Pairs::const_iterator> LockOrder::chain(std::string_view from,
                                                               std::string_view to) const {
  struct Step {
    Pairs::const_iterator pair;
    std::size_t before;  ///< which step led there; its own: none
  };
  std::vector<Step> steps;
  std::set<std::string_view> seen{from};
  const auto follow = [&](std::string_view name, std::size_t before) {
    for (auto pair = pairs_.lower_bound(NamesView(name, {}));
         pair != pairs_.end() && pair->first.first == name; ++pair) {
      if (seen.insert(pair->first.second).second) steps.push_back({pair, before});
    }
  };
  constexpr auto kNone = static_cast<std::size_t>(-1);
  follow(from, kNone);
  for (std::size_t i = 0; i < steps.size() && i < kMostFollowed; ++i) {
    if (steps[i].pair->first.second == to) {
      std::vector<Pairs::const_iterator> found;
      for (auto at = i; at != kNone; at = steps[at].before) found.push_back(steps[at].pair);
      std::reverse(found.begin(), found.end());
      return found;
    }
    follow(steps[i].pair->first.second, i);
  }
  return {};
}

std::size_t LockOrder::size() {
  const std::lock_guard lock(mutex_);
  return pairs_.size();
}

}  // namespace dlock::core
