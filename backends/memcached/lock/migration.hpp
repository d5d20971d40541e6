// SPDX-License-Identifier: Apache-2.0
//
// What a cache can do for a migration that ends here: tokens raised, notes kept as well as it keeps
// anything. On the worker's thread, against Commands.
#pragma once

#include <string>

#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::memcached {

/// The counter is at `above` at least. One that is ahead of the clock does not expire: it could not
/// be seeded again.
Answer lift_counter(Commands& server, const std::string& token_key, std::uint64_t above);

/// `holder`: whose lock it must be.
RecordAnswer raise(Commands& server, const ReleaseOrder& holder, const std::string& token_key,
                   std::uint64_t min_token);

RecordAnswer read_note(Commands& server, const std::string& key);
/// Empty texts stand for none.
RecordAnswer write_note(Commands& server, const std::string& key, const std::string& from,
                        const std::string& to);

}  // namespace dlock::memcached
