// SPDX-License-Identifier: Apache-2.0
//
// Lock name <-> file name, injective. `orders/42` is the file `orders%2F42.lock`, in one folder, so
// `a`, `a/b` and `a/1700000000` are three separate files. A name too long for a file name keeps its
// beginning and ends in `%~` and its SHA-256. Escaping never produces `%~`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::local {

std::string file_name(std::string_view lock_name);

/// The file of a note: never that of a lock.
std::string note_file_name(std::string_view key);

/// The file of requests to a lock's holder; and back, empty for any other file.
std::string ask_file_name(std::string_view lock_file);
std::string lock_file_asked(std::string_view file);
/// The files of a semaphore: the lock file that its waiters queue in, and the one with its permits.
/// Never those of a lock.
std::string semaphore_file_name(std::string_view name);
std::string permits_file_name(std::string_view name);

/// The reverse, for a file with permits: the file of its line, empty for any other file; and the
/// semaphore's name, as lock_name().
std::string line_file_of_permits(std::string_view permits_file);
std::optional<std::string> semaphore_name(std::string_view permits_file);

/// Returns whether the name is that of a lock file.
bool is_lock_file_name(std::string_view file);

/// Returns the lock's name. Empty if only the file contains it (a hashed name), or if it is not a
/// lock file.
std::optional<std::string> lock_name(std::string_view file);

/// `prefix` names whole parts: `a` is a prefix of `a` and `a/b`, not of `ab`. Empty: of all.
bool has_prefix(std::string_view lock_name, std::string_view prefix);

}  // namespace dlock::local
