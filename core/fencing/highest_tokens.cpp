// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/highest_tokens.hpp"

#include <algorithm>

namespace dlock::core {

std::optional<std::uint64_t> HighestTokens::find(std::string_view name, Mode mode) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return mode == Mode::shared ? found->second.exclusive : found->second.of_all;
}

void HighestTokens::raise(std::string_view name, std::uint64_t token, Mode mode) {
  const auto exclusive = mode == Mode::exclusive ? token : 0;
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return add(name, {token, exclusive});
  auto& highest = found->second;
  highest.exclusive = std::max(highest.exclusive, exclusive);
  if (token <= highest.of_all) return;
  auto place = by_token_.extract({highest.of_all, found->first});
  highest.of_all = token;
  place.value().first = token;
  // Most are the highest of all names' so far.
  by_token_.insert(by_token_.end(), std::move(place));
}

void HighestTokens::add(std::string_view name, const Highest& highest) {
  const auto added = by_name_.emplace(name, highest).first;
  by_token_.emplace(highest.of_all, added->first);
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
