// SPDX-License-Identifier: Apache-2.0
//
// The planted defects: deliberate mistakes that the simulation must find without knowing which one
// is in. One file each: */defects/*.edit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlock::simulation {

struct Defect {
  std::string_view name;
  std::string_view what;
  /// On which simulated store it can show; `any`: on each.
  std::string_view store;
  /// One that has shown it, tried before all others; 0: none is known.
  std::uint64_t seed;
  /// In runs of which mode alone it can show, `pairs`: of several locks on two stores; empty: any.
  std::string_view mode = {};
};

/// Those of the core, and of every backend that is built.
std::vector<Defect> all_defects();
/// Those that a fleet finds which is moved: lock by lock, behind a gate, in both stores at once.
std::vector<Defect> move_defects();
std::vector<Defect> leased_defects();

}  // namespace dlock::simulation
