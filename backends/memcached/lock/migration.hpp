// SPDX-License-Identifier: Apache-2.0
//
// What a cache can do for a migration that ends here: tokens raised, notes kept as well as it keeps
// anything. Against Commands.
#pragma once

#include <string>

#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::memcached {

/// The counter is at `above` at least. One that is ahead of the clock does not expire: it could not
/// be seeded again.
asio::awaitable<Answer> lift_counter(Commands& server, std::string token_key, std::uint64_t above);

/// `holder`: whose lock it must be.
asio::awaitable<RecordAnswer> raise(Commands& server, ReleaseOrder holder, std::string token_key,
                                    std::uint64_t min_token);

asio::awaitable<RecordAnswer> read_note(Commands& server, std::string key);
/// Empty texts stand for none.
asio::awaitable<RecordAnswer> write_note(Commands& server, std::string key, std::string from,
                                         std::string to);

}  // namespace dlock::memcached
