// SPDX-License-Identifier: Apache-2.0
//
// The data of a simulated Redis server: strings, hashes and sorted sets, with expiry on the
// server's wall clock. Pure; commands.hpp has the commands.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

namespace dlock::simulation::redis {

using SortedSet = std::map<std::string, double>;  ///< member to score
using Hash = std::map<std::string, std::string>;  ///< field to value

struct Entry {
  std::variant<std::string, SortedSet, Hash> value;
  std::optional<std::int64_t> expires_ms;  ///< on the server's wall clock
};

/// All keys by name.
using Snapshot = std::map<std::string, Entry>;

class Keyspace {
 public:
  /// Called after each change of a key. Null: the key was removed.
  std::function<void(const std::string& key, const Entry* entry)> on_change;

  /// Expired keys are not there. Null: no such key.
  const Entry* find(const std::string& key, std::int64_t now_ms) const;
  void put(const std::string& key, Entry entry);
  /// False: it was not there.
  bool remove(const std::string& key, std::int64_t now_ms);

  /// Everything, expired keys among it.
  const Snapshot& all() const noexcept { return entries_; }
  void replace(Snapshot entries) { entries_ = std::move(entries); }
  /// Removes expired keys.
  void sweep(std::int64_t now_ms);

 private:
  Snapshot entries_;
};

}  // namespace dlock::simulation::redis
