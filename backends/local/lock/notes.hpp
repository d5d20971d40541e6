// SPDX-License-Identifier: Apache-2.0
//
// Notes: each is a small file beside the locks. It is replaced as a whole, and on disk before it
// counts. May block: helper thread.
#pragma once

#include <string>

#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::local {

/// A writer of a note locks this file's guard byte. A reader that needs notes unchanged locks it
/// shared.
SystemResult open_writers(const Directory& directory, LockFile& out);

RecordAnswer read_note(const Directory& directory, const std::string& key);

/// Empty texts stand for none. The caller has the guard byte of open_writers(). `unique`: for a
/// temporary name.
RecordAnswer write_note(const Directory& directory, const std::string& key, std::string_view from,
                        std::string_view to, const std::string& unique);

/// As for notes, for a file by its own name; the last writer wins. Empty if the file does not exist
/// or cannot be read.
std::string read_small_file(const Directory& directory, const std::string& file);
Failure put_small_file(const Directory& directory, const std::string& file, std::string_view text,
                       const std::string& unique);

}  // namespace dlock::local
