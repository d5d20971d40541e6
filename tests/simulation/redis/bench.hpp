// SPDX-License-Identifier: Apache-2.0
//
// A simulated Redis and some programs, for scenarios and tests.
#pragma once

#include "tests/simulation/bench.hpp"
#include "tests/simulation/redis/sim_redis.hpp"

namespace dlock::simulation::redis {

inline constexpr auto kLock = "orders/42";
inline constexpr auto kKey = "dlock:{orders/42}";

struct RedisBench : Bench<SimRedis> {
  explicit RedisBench(bool exclusive, std::uint64_t seed = 1) : Bench(seed, exclusive) {
    store.on_forgotten = [this](const std::string& lock, const std::string&, Fault cause) {
      forgotten.emplace_back(lock, cause);
    };
  }

  Program& connected(const std::string& name) { return Bench::connected(name, kLock); }
  Program& holder() { return Bench::holder("holder", kLock); }

  std::vector<std::pair<std::string, Fault>> forgotten;
};

}  // namespace dlock::simulation::redis
