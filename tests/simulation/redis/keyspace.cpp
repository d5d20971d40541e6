// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/keyspace.hpp"

namespace dlock::simulation::redis {
namespace {

// As Redis has it: a key is there up to and including its last millisecond.
bool has_expired(const Entry& entry, std::int64_t now_ms) {
  return entry.expires_ms && now_ms > *entry.expires_ms;
}

}  // namespace

const Entry* Keyspace::find(const std::string& key, std::int64_t now_ms) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || has_expired(found->second, now_ms)) return nullptr;
  return &found->second;
}

void Keyspace::put(const std::string& key, Entry entry) {
  const auto placed = entries_.insert_or_assign(key, std::move(entry)).first;
  if (on_change) on_change(key, &placed->second);
}

bool Keyspace::remove(const std::string& key, std::int64_t now_ms) {
  const bool was_there = find(key, now_ms) != nullptr;
  entries_.erase(key);
  if (on_change && was_there) on_change(key, nullptr);
  return was_there;
}

void Keyspace::sweep(std::int64_t now_ms) {
  std::erase_if(entries_, [&](const auto& one) {
    const bool gone = has_expired(one.second, now_ms);
    if (gone && on_change) on_change(one.first, nullptr);
    return gone;
  });
}

}  // namespace dlock::simulation::redis
