// SPDX-License-Identifier: Apache-2.0
//
// What is only read: the poll of waiters, a lock's status, and the operator's break. On the
// worker's thread, against Commands.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::memcached {

struct PollResult {
  Answer answer;
  std::set<std::string, std::less<>> free;  ///< keys that are not there
};

/// One multi-get for all keys. Of `strays` (released claims of which an add may come in late), what
/// has come in is taken away.
PollResult look_all(Commands& server, const std::vector<std::string>& keys,
                    const std::vector<ReleaseOrder>& strays);

/// The number in a counter; empty: none is there, or something else is.
std::optional<std::uint64_t> read_counter(const Item* item);

struct Peek {
  Answer answer;
  std::optional<std::string> value;      ///< of the lock's key
  std::optional<std::uint64_t> counter;  ///< the last token given
};

Peek peek(Commands& server, const std::string& key, const std::string& token_key);

/// Deletes the lock's key if the counter stands at `token`.
Failure evict(Commands& server, const std::string& key, const std::string& token_key,
              std::uint64_t token);

/// For `dlock status`. `now_ms`: the wall clock here.
LockStatus describe(const std::string& name, const Peek& seen, std::int64_t now_ms);

}  // namespace dlock::memcached
