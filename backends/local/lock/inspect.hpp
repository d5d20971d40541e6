// SPDX-License-Identifier: Apache-2.0
//
// Who holds and who waits, as the kernel's locks tell (that counts) and the records in the files
// (that name them). Reads only. May block: helper thread.
#pragma once

#include <string>
#include <vector>

#include "backends/local/wire/directory.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::local {

/// A file that is not there is a lock that nobody ever held.
Result<LockStatus> read_status(const Directory& directory, const std::string& lock_name,
                               std::int64_t now_ms);

/// The same of the file that is named, whose lock has that name.
Result<LockStatus> read_status_of(const Directory& directory, const std::string& file_name,
                                  const std::string& lock_name, std::int64_t now_ms);

/// The names of all files in the directory.
Failure list_files(const Directory& directory, std::vector<std::string>& files);

/// Adds a file that could not be read to the failure of a list that is returned without it.
void leave_out(Failure& all, Failure one);

/// All locks below `prefix` that somebody holds or waits for, by name. A failure beside the value
/// names the first file that could not be read.
Result<std::vector<LockStatus>> read_all(const Directory& directory, const std::string& prefix,
                                         std::int64_t now_ms);

}  // namespace dlock::local
