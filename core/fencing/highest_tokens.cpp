// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/highest_tokens.hpp"

#include <algorithm>

namespace dlock::core {

std::optional<std::uint64_t> HighestTokens::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

void HighestTokens::raise(std::string_view name, std::uint64_t token) {
  auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    found = by_name_.emplace(name, token).first;
  } else {
    if (token <= found->second) return;
    by_token_.erase({found->second, found->first});
    found->second = token;
  }
  by_token_.emplace(token, found->first);
  if (by_name_.size() > most_names_) forget_lowest();
}

void HighestTokens::forget_lowest() {
  const auto lowest = by_token_.begin();
  floor_ = std::max(floor_, lowest->first);
  const auto of_name = by_name_.find(lowest->second);
  by_token_.erase(lowest);
  by_name_.erase(of_name);
}

}  // namespace dlock::core
