// SPDX-License-Identifier: Apache-2.0
//
// The errors of locks in files: codes of the category `dlock.local`, each with its portable
// dlock::errc.
#pragma once

#include <string>

#include "backends/local/rules/format.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::local {

/// Values are permanent.
enum class Error {
  directory_unusable = 1,  ///< the path is not a directory, or cannot become one
  permission = 2,          ///< the system refuses our user
  foreign_file = 3,        ///< the name of a lock file is used by a file of another program
  damaged_file = 4,  ///< an invalid lock file: truncated, altered, or with a decreased counter
  descriptors_used_up = 5,  ///< RLIMIT_NOFILE, or the system's own limit
  no_space = 6,             ///< disk or quota full
  file_system_refused = 7,  ///< a network file system, or one we do not know
  locks_not_kept = 8,       ///< the self-test: two openers got the same lock
  no_boot_id = 9,           ///< /proc is not there
  tokens_used_up = 10,      ///< 2^53 tickets
  too_slow = 11,            ///< the disk did not answer in time
  system = 12,              ///< anything else the system said
  cannot_evict = 13,        ///< the store has no lease that could end
  not_held = 14,            ///< evict: no client holds it
  other_token = 15,         ///< evict: held under another token
  removed = 16,             ///< the file or directory was removed meanwhile
  sealed = 17,              ///< a migration's record is in the lock's place
  text_too_long = 18,       ///< a record or a note
  too_new = 19,             ///< the path has not led to this directory for long enough yet
  no_thread = 20,           ///< a blocking call needs a thread, and the system had none left
  gate_is_written = 21,     ///< a plan's gate is kept by its writer, for a moment
  newer_format = 22,        ///< a newer version of dlock wrote the file
};

const boost::system::error_category& category() noexcept;
boost::system::error_code make_error_code(Error error) noexcept;

/// The failure that a system call left in `number`, about `what` (a path).
Failure system_failure(int number, std::string_view what);
Failure make_failure(Error error, std::string text);
/// No failure if the front of the file is sound.
Failure front_failure(const Front& front, std::string_view path);

}  // namespace dlock::local

template <>
struct boost::system::is_error_code_enum<dlock::local::Error> : std::true_type {};
