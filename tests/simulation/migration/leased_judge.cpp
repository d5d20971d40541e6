// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/leased_judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testkit/checkers/exclusion.hpp"

namespace dlock::simulation::migration {
namespace {

using checkers::Grant;
using checkers::GrantId;
using checkers::History;
using checkers::Violations;

std::string describe(GrantId id, const LeasedFacts& facts) {
  const auto& fact = facts.grants.at(id);
  return fmt::format("grant {} to {}, shown by the {}", id, fact.process,
                     fact.is_source_shown ? "source" : "target");
}

/// The source forgot that one of them held it, so that the other could have it.
bool is_forgotten(const LeasedFacts& facts, const checkers::Overlap& overlap,
                  const std::string& lock, Duration lease) {
  const auto& one = facts.grants.at(overlap.earlier);
  const auto& other = facts.grants.at(overlap.later);
  return std::any_of(facts.wipes.begin(), facts.wipes.end(), [&](const LeasedFacts::Wipe& wipe) {
    const auto holder = wipe.holders.find(lock);
    return holder != wipe.holders.end() &&
           (holder->second == one.process || holder->second == other.process) &&
           wipe.at <= overlap.at && overlap.at <= wipe.at + lease;
  });
}

struct Shown {
  GrantId id;
  const Grant* grant;
  bool by_source;
};

/// By lock, in the order of the grants.
std::map<std::string, std::vector<Shown>> shown_tokens(const std::map<GrantId, Grant>& grants,
                                                       const LeasedFacts& facts) {
  std::map<std::string, std::vector<Shown>> all;
  for (const auto& [id, grant] : grants) {
    const auto& fact = facts.grants.at(id);
    if (!fact.is_legacy) all[grant.name].push_back({id, &grant, fact.is_source_shown});
  }
  for (auto& [name, list] : all) {
    std::stable_sort(list.begin(), list.end(), [](const Shown& a, const Shown& b) {
      return a.grant->granted < b.grant->granted;
    });
  }
  return all;
}

bool is_separated(const LeasedFacts& facts, const Shown& earlier, const Shown& later,
                  Duration lease) {
  if (!earlier.by_source || !later.by_source) return false;
  const auto from = earlier.grant->granted - 2 * lease;
  return std::any_of(facts.wipes.begin(), facts.wipes.end(), [&](const LeasedFacts::Wipe& wipe) {
    return from <= wipe.at && wipe.at <= later.grant->granted;
  });
}

}  // namespace

Violations check_leased_holders(const History& history, const LeasedFacts& facts, Duration lease) {
  Violations found;
  std::map<GrantId, std::string> locks;
  for (const auto& event : history) {
    if (event.kind == checkers::EventKind::granted) locks[event.grant] = event.name;
  }
  Violations same;
  for (const auto& overlap : checkers::overlaps_of(history, same)) {
    const auto& lock = locks.at(overlap.later);
    if (is_forgotten(facts, overlap, lock, lease)) continue;
    found.push_back({fmt::format("{} and {} at once, of '{}'", describe(overlap.earlier, facts),
                                 describe(overlap.later, facts), lock),
                     overlap.at});
  }
  found.insert(found.end(), same.begin(), same.end());
  return found;
}

Violations check_leased_tokens(const History& history, const LeasedFacts& facts, Duration lease) {
  Violations found;
  const auto grants = checkers::grants_of(history, found);
  found.clear();  // check_leased_holders() reports them
  for (const auto& [name, list] : shown_tokens(grants, facts)) {
    for (auto later = list.begin(); later != list.end(); ++later) {
      const auto token = later->grant->token.value_or(0);
      for (auto earlier = list.begin(); earlier != later; ++earlier) {
        const auto before = earlier->grant->token.value_or(0);
        if (token > before || is_separated(facts, *earlier, *later, lease)) continue;
        found.push_back(
            {fmt::format("{} has token {} of '{}', not above {} of {}", describe(later->id, facts),
                         token, name, before, describe(earlier->id, facts)),
             later->grant->granted});
        break;
      }
    }
  }
  return found;
}

}  // namespace dlock::simulation::migration
