// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/dual_judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testkit/checkers/exclusion.hpp"

namespace dlock::simulation::migration {
namespace {

using checkers::Grant;
using checkers::GrantId;
using checkers::History;
using checkers::Violations;

std::string describe(GrantId id, const DualFacts& facts) {
  const auto& fact = facts.grants.at(id);
  return fmt::format("grant {} to {} ({})", id, fact.process, to_string(fact.sort));
}

/// The source forgot that one of them held it, so that the other could have it.
bool forgotten(const DualFacts& facts, const checkers::Overlap& overlap, const std::string& lock,
               Duration lease) {
  const auto& one = facts.grants.at(overlap.earlier);
  const auto& other = facts.grants.at(overlap.later);
  if (!locks_source(one.sort) || !locks_source(other.sort)) return false;
  if (locks_target(one.sort) && locks_target(other.sort)) return false;
  return std::any_of(facts.wipes.begin(), facts.wipes.end(), [&](const DualFacts::Wipe& wipe) {
    const auto holder = wipe.holders.find(lock);
    return holder != wipe.holders.end() &&
           (holder->second == one.process || holder->second == other.process) &&
           wipe.at <= overlap.at && overlap.at <= wipe.at + lease;
  });
}

struct Shown {
  GrantId id;
  const Grant* grant;
  Sort sort;
};

/// By lock, in the order of the grants.
std::map<std::string, std::vector<Shown>> shown_tokens(const std::map<GrantId, Grant>& grants,
                                                       const DualFacts& facts) {
  std::map<std::string, std::vector<Shown>> all;
  for (const auto& [id, grant] : grants) {
    const auto sort = facts.grants.at(id).sort;
    if (sort != Sort::legacy) all[grant.name].push_back({id, &grant, sort});
  }
  for (auto& [name, list] : all) {
    std::stable_sort(list.begin(), list.end(), [](const Shown& a, const Shown& b) {
      return a.grant->granted < b.grant->granted;
    });
  }
  return all;
}

/// Whether the source can have forgotten between the two what bound their tokens.
bool parted(const DualFacts& facts, const Shown& earlier, const Shown& later, Duration lease) {
  if (locks_target(earlier.sort) && locks_target(later.sort)) return false;
  const auto from = earlier.grant->granted - 2 * lease;
  return std::any_of(facts.wipes.begin(), facts.wipes.end(), [&](const DualFacts::Wipe& wipe) {
    return from <= wipe.at && wipe.at <= later.grant->granted;
  });
}

std::uint64_t floor_at(const DualFacts& facts, TimePoint when) {
  std::uint64_t floor = 0;
  for (const auto& opening : facts.openings_of_zero) {
    if (opening.at <= when) floor = opening.floor;
  }
  return floor;
}

}  // namespace

const char* to_string(Sort sort) noexcept {
  switch (sort) {
    case Sort::legacy:
      return "legacy";
    case Sort::source:
      return "phase 0";
    case Sort::both:
      return "phase 1";
    case Sort::target:
      return "phase 2";
    case Sort::target_only:
      return "target only";
  }
  return "?";
}

int phase_of(Sort sort) noexcept {
  return sort == Sort::source ? 0 : sort == Sort::both ? 1 : sort == Sort::target ? 2 : -1;
}

bool locks_source(Sort sort) noexcept {
  return sort == Sort::legacy || sort == Sort::source || sort == Sort::both;
}

bool locks_target(Sort sort) noexcept {
  return sort == Sort::both || sort == Sort::target || sort == Sort::target_only;
}

Violations check_holders(const History& history, const DualFacts& facts, Duration lease) {
  Violations found;
  std::map<GrantId, std::string> locks;
  // As if there were one lock: a holder in the source alone and one in the target alone share none.
  History one_lock = history;
  for (auto& event : one_lock) {
    if (event.kind != checkers::EventKind::granted) continue;
    locks[event.grant] = event.name;
    event.name = "any";
  }
  Violations same;
  for (const auto& overlap : checkers::overlaps_of(one_lock, same)) {
    const auto& lock = locks.at(overlap.later);
    const auto one = facts.grants.at(overlap.earlier).sort;
    const auto other = facts.grants.at(overlap.later).sort;
    const bool apart =
        !(locks_source(one) && locks_source(other)) && !(locks_target(one) && locks_target(other));
    const bool same_lock = locks.at(overlap.earlier) == lock;
    if (!apart && (!same_lock || forgotten(facts, overlap, lock, lease))) continue;
    found.push_back(
        {fmt::format("{} and {} at once, of '{}' and '{}'", describe(overlap.earlier, facts),
                     describe(overlap.later, facts), locks.at(overlap.earlier), lock),
         overlap.at});
  }
  found.insert(found.end(), same.begin(), same.end());
  return found;
}

Violations check_shown_tokens(const History& history, const DualFacts& facts, Duration lease) {
  Violations found;
  const auto grants = checkers::grants_of(history, found);
  found.clear();  // check_holders() has told of them
  for (const auto& [name, list] : shown_tokens(grants, facts)) {
    for (auto later = list.begin(); later != list.end(); ++later) {
      const auto token = later->grant->token.value_or(0);
      const auto complain = [&, &name = name](std::string than) {
        found.push_back({fmt::format("{} has token {} of '{}', not above {}",
                                     describe(later->id, facts), token, name, std::move(than)),
                         later->grant->granted});
      };
      const auto floor = floor_at(facts, later->grant->granted);
      if (later->sort == Sort::source && token <= floor) complain(fmt::format("floor {}", floor));
      for (auto earlier = list.begin(); earlier != later; ++earlier) {
        if (token > earlier->grant->token.value_or(0) || parted(facts, *earlier, *later, lease)) {
          continue;
        }
        complain(fmt::format("{} of {}", earlier->grant->token.value_or(0),
                             describe(earlier->id, facts)));
        break;
      }
    }
  }
  return found;
}

}  // namespace dlock::simulation::migration
