// SPDX-License-Identifier: Apache-2.0
//
// Notes: a small file each, beside the locks, replaced whole or not at all and on disk before it
// counts. May block: helper thread.
#pragma once

#include <string>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// Whoever writes a note has its guard byte; whoever needs one to stay has it shared.
SystemResult open_writers(const Directory& directory, LockFile& out);

RecordAnswer read_note(const Directory& directory, const std::string& key);

/// Empty texts stand for none. The caller has the guard byte of open_writers(). `unique`: for a
/// temporary name.
RecordAnswer write_note(const Directory& directory, const std::string& key, std::string_view from,
                        std::string_view to, const std::string& unique);

/// The same for a file by its name, as it stands; who comes last is right. Empty if there is none,
/// or it cannot be read.
std::string read_small_file(const Directory& directory, const std::string& file);
Failure put_small_file(const Directory& directory, const std::string& file, std::string_view text,
                       const std::string& unique);

}  // namespace dlock::local
