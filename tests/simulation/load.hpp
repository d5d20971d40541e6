// SPDX-License-Identifier: Apache-2.0
//
// What many held locks cost a store: programs take them, hold them for some leases and give them
// back, while nothing goes wrong. Counts what the servers are asked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

struct LoadOptions {
  const Kind* kind = nullptr;
  std::uint64_t locks = 1000;  ///< of all programs together
  int programs = 4;
  milliseconds lease = seconds(30);  ///< where a lock has one of its own
};

/// Of one kind of request.
struct Traffic {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;  ///< there and back
};

/// What the servers were asked while the locks were acquired, held, given back.
struct LoadPhase {
  std::string name;
  Duration took{};
  std::map<std::string, Traffic> by_kind;
  std::uint64_t most_a_second = 0;     ///< of all kinds
  std::uint64_t most_a_hundredth = 0;  ///< of a second: what comes at once
};

struct LoadResult {
  std::vector<LoadPhase> phases;
  std::uint64_t lost = 0;          ///< locks that were; a mistake
  std::uint64_t left = 0;          ///< in the store at the end, but for what may stay; likewise
  std::uint64_t bytes_a_lock = 0;  ///< of memory: in its program and in the simulated server
};

LoadResult load(const LoadOptions& options);

}  // namespace dlock::simulation
