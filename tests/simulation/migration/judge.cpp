// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/judge.hpp"

#include <fmt/format.h>

#include "testkit/checkers/exclusion.hpp"

namespace dlock::simulation::migration {

checkers::Violations judge(const Recorder& recorder, const std::map<GrantId, std::string>& stores,
                           const std::set<std::string>& forgotten) {
  checkers::Violations violations;
  const auto store_of = [&](GrantId grant) {
    const auto found = stores.find(grant);
    return found == stores.end() ? std::string() : found->second;
  };
  const auto was_forgotten = [&](GrantId grant) {
    return forgotten.count(recorder.owner_of(grant)) > 0;
  };
  for (const auto& overlap : checkers::overlaps_of(recorder.history(), violations)) {
    const bool both_there = store_of(overlap.earlier) == "t" && store_of(overlap.later) == "t";
    if (both_there && (was_forgotten(overlap.earlier) || was_forgotten(overlap.later))) continue;
    violations.push_back(
        {fmt::format("grants {} ({}) and {} ({}) at once", overlap.earlier,
                     store_of(overlap.earlier), overlap.later, store_of(overlap.later)),
         overlap.at});
  }
  // Told late, one that was forgotten may come after a newer one of the same store.
  checkers::History kept;
  for (const auto& event : recorder.history()) {
    if (event.grant == 0 || !was_forgotten(event.grant)) kept.push_back(event);
  }
  for (auto&& one : checkers::check_tokens(kept)) violations.push_back(one);
  for (auto&& one : checkers::check_telling(recorder.history())) violations.push_back(one);
  for (const auto& one : recorder.violations()) violations.push_back(one);
  return violations;
}

}  // namespace dlock::simulation::migration
