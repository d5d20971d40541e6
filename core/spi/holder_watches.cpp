// SPDX-License-Identifier: Apache-2.0
#include "core/spi/holder_watches.hpp"

#include <utility>

namespace dlock::core {

bool HolderWatches::add(const std::string& name, Id id, Changed changed) {
  auto& those = watches_[name];
  those[id] = std::move(changed);
  return those.size() == 1;
}

bool HolderWatches::remove(const std::string& name, Id id) noexcept {
  const auto found = watches_.find(name);
  if (found == watches_.end() || found->second.erase(id) == 0) return false;
  if (!found->second.empty()) return false;
  watches_.erase(found);
  return true;
}

void HolderWatches::tell(const std::string& name) const {
  const auto found = watches_.find(name);
  if (found == watches_.end()) return;
  for (const auto& [id, changed] : found->second) changed();
}

void HolderWatches::tell_all() const {
  for (const auto& [name, those] : watches_) {
    for (const auto& [id, changed] : those) changed();
  }
}

std::vector<std::string> HolderWatches::names() const {
  std::vector<std::string> all;
  all.reserve(watches_.size());
  for (const auto& [name, those] : watches_) all.push_back(name);
  return all;
}

}  // namespace dlock::core
