// SPDX-License-Identifier: Apache-2.0
//
// Chooses the server of each lock (`distribution`), permanently. A server that is down keeps its
// locks: a second client that chose another server would be a second holder. Pure; concurrent const
// calls are safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "backends/memcached/rules/names.hpp"
#include "dlock/spi/options.hpp"

struct memcached_st;

namespace dlock::memcached {

class Placement {
 public:
  /// Throws LockError{config_invalid} if `distribution` does not fit the servers.
  explicit Placement(const StoreOptions& options);

  /// Returns the place of the name's server in the list, from 0. `sha256` hashes the name; the
  /// distributions of libmemcached hash the lock's key.
  std::size_t server_of(std::string_view name, const KeyMap& keys) const;

 private:
  struct Free {
    void operator()(memcached_st* hashing) const noexcept;
  };

  std::size_t servers_;
  /// Null for `sha256`, and if all locks are on one server. Never connects.
  std::unique_ptr<memcached_st, Free> hashing_;
};

/// Returns the place of the server that `sha256` chooses: the first 32 bits of the name's SHA-256,
/// modulo the number of servers.
std::size_t server_of(std::string_view name, std::size_t servers);

}  // namespace dlock::memcached
