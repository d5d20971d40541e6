// SPDX-License-Identifier: Apache-2.0
//
// Lists holders and waiters. The kernel's locks decide; the records in the files name the owners.
// Reads only. May block: helper thread.
#pragma once

#include <string>
#include <vector>

#include "backends/local/wire/directory.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::local {

/// A missing file is a lock that was never held.
Result<LockStatus> read_status(const Directory& directory, const std::string& lock_name,
                               std::int64_t now_ms);

/// The same for a lock with another file name.
Result<LockStatus> read_status_of(const Directory& directory, const std::string& file_name,
                                  const std::string& lock_name, std::int64_t now_ms);

/// The names of all files in the directory.
Failure list_files(const Directory& directory, std::vector<std::string>& files);

/// Adds a file that could not be read to the failure of a list that is returned without it.
void leave_out(Failure& all, Failure one);

/// Returns all locks below `prefix` that are held or waited for, by name. A failure beside the
/// value names the first file that could not be read.
Result<std::vector<LockStatus>> read_all(const Directory& directory, const std::string& prefix,
                                         std::int64_t now_ms);

}  // namespace dlock::local
