// SPDX-License-Identifier: Apache-2.0
//
// Scenario: a chosen course of events on one simulated store, for what runs by chance come to in
// one of many thousands only. The seed varies the moments.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlock::simulation {

struct Scenario {
  std::string_view name;
  /// Whether it ended as it must not. Knows nothing of planted defects.
  bool (*goes_wrong)(std::uint64_t seed);
  /// How many of its seeds are worth while.
  std::uint64_t seeds;
};

/// For those that are written as what has to come of it.
template <bool (*goes_well)(std::uint64_t)>
bool fails(std::uint64_t seed) {
  return !goes_well(seed);
}

struct StoreScenarios {
  std::string_view store;
  std::vector<Scenario> scenarios;
};
/// Of every simulated store of this build; generated.
const std::vector<StoreScenarios>& all_scenarios();

}  // namespace dlock::simulation
