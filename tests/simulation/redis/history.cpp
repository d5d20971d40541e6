// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/history.hpp"

namespace dlock::simulation::redis {

void History::apply(const Change& change, Snapshot& to) {
  if (change.entry) {
    to.insert_or_assign(change.key, *change.entry);
  } else {
    to.erase(change.key);
  }
}

void History::note(TimePoint when, const std::string& key, const Entry* entry) {
  changes_.push_back({when, key, entry != nullptr ? std::optional(*entry) : std::nullopt});
  while (!changes_.empty() && changes_.front().when < when - kDepth) {
    apply(changes_.front(), oldest_);
    changes_.pop_front();
  }
}

void History::forget(const std::string& key) {
  oldest_.erase(key);
  std::erase_if(changes_, [&](const Change& change) { return change.key == key; });
}

Snapshot History::at(TimePoint when) const {
  auto data = oldest_;
  for (const auto& change : changes_) {
    if (change.when > when) break;
    apply(change, data);
  }
  return data;
}

}  // namespace dlock::simulation::redis
