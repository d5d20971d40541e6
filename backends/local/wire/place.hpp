// SPDX-License-Identifier: Apache-2.0
//
// Checks whether the path of a lock directory still leads to the open directory. It may lead
// elsewhere: a directory above was renamed and created again, a symlink was switched, or a file
// system was mounted over it. Processes that use the path then find another directory, with other
// files, and would hold the same locks. README.md explains how both sides avoid that.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backends/local/wire/directory.hpp"

namespace dlock::local {

enum class Leads {
  here,
  elsewhere,  ///< to another directory, or to none
  unknown,    ///< the system does not say
};

/// One system call. `error`: the errno, if it is unknown.
Leads where_it_leads(const Directory& directory, int& error) noexcept;

/// The interval at which a process with locks in a directory checks that the path still leads
/// there.
inline constexpr std::chrono::milliseconds kLookAtPath{250};
/// No lock is granted in a directory before its path has led there for this long. That is two
/// checks of the holders in another directory.
inline constexpr std::chrono::milliseconds kSettling{500};

/// A mark in the directory shows since when its path leads there. Each path has its own mark: the
/// directory may be known by another path, and new by this one. Creates a missing mark, and
/// replaces one that was copied from another directory. Returns the rest of kSettling; all of it if
/// no mark can be made. Uses the wall clock: a jump ahead by half a second just then shortens it.
/// May block.
std::chrono::milliseconds mark_path(const Directory& directory, std::int64_t now_ms);
/// The path leads elsewhere: if it leads here again, the directory is new.
void remove_mark(const Directory& directory);

/// All directories and symlinks that the path leads through, itself included.
std::vector<std::string> way_to(const std::string& path);

}  // namespace dlock::local
