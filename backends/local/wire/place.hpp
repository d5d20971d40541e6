// SPDX-License-Identifier: Apache-2.0
//
// Where the path of a lock directory leads: still to the directory that we have open, or elsewhere
// by now, since somebody renamed one above it and made it anew, switched a symlink, or mounted
// something over it. Whoever comes by the path then finds another directory, with other files, and
// would hold the same locks. README.md says how both sides are kept from that.
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

/// Who has locks in a directory looks this often whether the path still leads there.
inline constexpr std::chrono::milliseconds kLookAtPath{250};
/// Nobody is served in a directory before the path has been seen to lead there for this long: two
/// looks of those who had locks in another one.
inline constexpr std::chrono::milliseconds kSettling{500};

/// A mark in the directory says since when its path leads there (a path has one of its own: the
/// directory may be known by another one, and new by this). Makes it when there is none, or that
/// of another directory, which was copied. Returns how much of kSettling is left; all of it if no
/// mark can be made. By the wall clock: one that jumps ahead by half a second just then shortens
/// it. May block.
std::chrono::milliseconds mark_path(const Directory& directory, std::int64_t now_ms);
/// Its path leads elsewhere: should it come back, it is new.
void remove_mark(const Directory& directory);

/// All directories and symlinks that the path leads through, itself included.
std::vector<std::string> way_to(const std::string& path);

}  // namespace dlock::local
