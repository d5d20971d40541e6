// SPDX-License-Identifier: Apache-2.0
//
// What is only read: the poll of waiters, a lock's status, and the operator's break. Against
// Commands.
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

/// One multi-get for all keys. Of `strays` (released claims of which an add may come in late), what
/// has come in is taken away.
asio::awaitable<PollResult> look_all(Commands& server, std::vector<std::string> keys,
                                     std::vector<ReleaseOrder> strays);

/// The number in a counter; empty: none is there, or something else is.
std::optional<std::uint64_t> counter_of(const Item* item);

struct Peek : Seen {
  Answer answer;
};

asio::awaitable<Peek> peek(Commands& server, std::string key, std::string token_key);

/// Deletes the lock's key if the counter stands at `token`.
asio::awaitable<Failure> evict(Commands& server, std::string key, std::string token_key,
                               std::uint64_t token);

}  // namespace dlock::memcached
