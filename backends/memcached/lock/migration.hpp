// SPDX-License-Identifier: Apache-2.0
//
// The operations of a cache for a migration that ends here: it raises tokens, and keeps notes as
// well as any item. Uses Commands.
#pragma once

#include <string>

#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::memcached {

/// Raises the counter to at least `above`. A counter that is ahead of the clock does not expire: it
/// could not be seeded again.
asio::awaitable<Answer> lift_counter(Commands& server, std::string token_key, std::uint64_t above);

/// `holder`: the required owner of the lock.
asio::awaitable<RecordAnswer> raise(Commands& server, ReleaseOrder holder, std::string token_key,
                                    std::uint64_t min_token);

asio::awaitable<RecordAnswer> read_note(Commands& server, std::string key);
/// Empty texts stand for none.
asio::awaitable<RecordAnswer> write_note(Commands& server, std::string key, std::string from,
                                         std::string to);

}  // namespace dlock::memcached
