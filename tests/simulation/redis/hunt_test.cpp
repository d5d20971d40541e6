// SPDX-License-Identifier: Apache-2.0
//
// Runs by chance find nothing in the backend as it is, and find what was planted.
#include "tests/simulation/redis/hunt.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/planted.hpp"
#include "tests/simulation/redis/defects.hpp"

namespace dlock::simulation::redis {
namespace {

/// Seeds of one test; more by hand: DLOCK_HUNTS=5000.
std::uint64_t hunts(std::uint64_t few) {
  const char* more = std::getenv("DLOCK_HUNTS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : few;
}

/// The first seed that finds something; 0: none.
std::uint64_t search(std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const bool exclusive : {true, false}) {
      if (!hunt(seed, exclusive).complaint.empty()) return seed;
    }
  }
  return 0;
}

TEST(SimulatedRedisHunt, NothingIsFoundInTheBackend) {
  for (std::uint64_t seed = 1; seed <= hunts(200); ++seed) {
    for (const bool exclusive : {true, false}) {
      const auto found = hunt(seed, exclusive);
      if (found.complaint.empty()) continue;
      ADD_FAILURE() << "seed " << seed << (exclusive ? ", exclusive: " : ", as installed: ")
                    << found.complaint;
      const char* show = std::getenv("DLOCK_TRACE");
      if (show != nullptr) std::fputs(hunt(seed, exclusive, true).trace.c_str(), stderr);
      return;
    }
  }
}

TEST(SimulatedRedisHunt, DISABLED_EveryDefect) {
  for (const auto& defect : kDefects) {
    core::planted_defect = defect.name;
    const auto seed = search(hunts(200));
    core::planted_defect = {};
    std::printf("%-36s %s %llu\n", std::string(defect.name).c_str(),
                seed == 0 ? "NOT FOUND" : "seed", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace dlock::simulation::redis
