// SPDX-License-Identifier: Apache-2.0
//
// Runs by chance find nothing in the backend as it is. What they do find: defects_test.cpp.
#include "tests/simulation/redis/hunt.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dlock::simulation::redis {
namespace {

/// Seeds of one test; more by hand: DLOCK_HUNTS=5000.
std::uint64_t hunts(std::uint64_t few) {
  const char* more = std::getenv("DLOCK_HUNTS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : few;
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

}  // namespace
}  // namespace dlock::simulation::redis
