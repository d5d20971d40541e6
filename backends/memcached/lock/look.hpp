// SPDX-License-Identifier: Apache-2.0
//
// The procedures that only read: the poll of waiters and a lock's status. Also the operator's
// break. Uses Commands.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/rules/status.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct PollResult {
  Answer answer;
  std::set<std::string, std::less<>> free;  ///< keys that are not there
};

/// Reads all keys with one multi-get. `strays` are released claims whose add may arrive late: an
/// add that has arrived is deleted.
asio::awaitable<PollResult> look_all(Commands& server, std::vector<std::string> keys,
                                     std::vector<ReleaseOrder> strays);

/// Returns the number in a counter. Empty: no counter exists, or it has another value.
std::optional<std::uint64_t> counter_of(const Item* item);
/// Returns the failure for a counter that cannot be counted up.
Failure broken_counter(const std::string& token_key, const Item* item);

struct Peek : Seen {
  Answer answer;
};

asio::awaitable<Peek> peek(Commands& server, std::string key, std::string token_key);

/// Where a lock's claim and its token are.
struct LockKeys {
  std::string key;
  std::string token_key;
};
/// Marks the lock's value, or deletes it, if the counter is at the request's token. The mark keeps
/// the expiry where the server says it, else it lasts one lease.
asio::awaitable<EvictAnswer> evict(Commands& server, LockKeys lock, EvictRequest request);

}  // namespace dlock::memcached
