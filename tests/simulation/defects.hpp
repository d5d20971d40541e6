// SPDX-License-Identifier: Apache-2.0
//
// The planted defects: deliberate mistakes in the sources, each behind DLOCK_PLANTED(name), that
// the simulation must find without knowing which one is in.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlock::simulation {

struct Defect {
  std::string_view name;
  std::string_view what;
  /// On which simulated store it can show; `any`: on each.
  std::string_view store = "any";
  /// One that has shown it, tried before all others; 0: none is known.
  std::uint64_t seed = 0;
};

/// Those of the core, and of every backend that is built.
std::vector<Defect> all_defects();

}  // namespace dlock::simulation
