// SPDX-License-Identifier: Apache-2.0
#include "dlock/contract/harness.hpp"

namespace dlock::contract {

std::vector<Store> stores_with_processes() {
  auto all = stores();
  // Asking starts nothing.
  std::erase_if(all, [](const Store& store) { return !store.harness().has_processes(); });
  return all;
}

std::vector<Store> stores_with_a_link() {
  auto all = stores();
  std::erase_if(all, [](const Store& store) { return !store.harness().has_link(); });
  return all;
}

// Most stores have an operator's break.
void Harness::take_away(LockManager& manager, const std::string& /*url*/, const std::string& name) {
  manager.evict(name, manager.status(name).token.value(), {.at_once = true});
}

}  // namespace dlock::contract
