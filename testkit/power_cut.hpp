// SPDX-License-Identifier: Apache-2.0
//
// What is left of a folder when the power goes: of each file what the last sync was given, of the
// folder the names that it had at its own last sync, and nothing else. For programs that link
// dlock_power_cut, which puts its own fsync(), fdatasync() and pwritev2() before the C library's.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace dlock::testkit {

/// By name. A file whose name was synced and whose content was not is empty. Thread-safe.
std::map<std::string, std::string> left_by_power_cut(const std::filesystem::path& folder);

/// From now on every sync of a file or folder fails with this errno, and nothing reaches the disk;
/// 0: they work again. Writes that sync are let be.
void fail_syncs(int error) noexcept;

}  // namespace dlock::testkit
