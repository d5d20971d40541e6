// SPDX-License-Identifier: Apache-2.0
//
// The backends that the contract suite runs on: one line each, if they are built.
#include "tests/contract/harness.hpp"

namespace dlock::contract {

Harness& local_harness();
Harness& memcached_harness();
Harness& memory_harness();
Harness& redis_harness();
Harness& zookeeper_harness();

std::vector<Store> stores() {
  return {
      {"local", local_harness},
#ifdef DLOCK_CONTRACT_MEMCACHED
      {"memcached", memcached_harness},
#endif
      {"memory", memory_harness},
#ifdef DLOCK_CONTRACT_REDIS
      {"redis", redis_harness},
#endif
      {"zookeeper", zookeeper_harness},
  };
}

std::vector<Store> stores_with_processes() {
  auto all = stores();
  // Asking starts nothing.
  std::erase_if(all, [](const Store& store) { return !store.harness().has_processes(); });
  return all;
}

// Most stores have an operator's break.
void Harness::take_away(LockManager& manager, const std::string& /*url*/, const std::string& name) {
  manager.evict(name, manager.status(name).token.value());
}

}  // namespace dlock::contract
