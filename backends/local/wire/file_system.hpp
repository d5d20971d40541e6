// SPDX-License-Identifier: Apache-2.0
//
// Which file systems keep a lock for every process that uses it. A network or FUSE file system may
// keep it on this machine only, or not at all, and says nothing about it; inotify does not see what
// others do there. So: a list of those that are known to be good, and a self-test beside it.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::local {

struct FileSystem {
  enum class Verdict { good, refused, unknown };
  Verdict verdict = Verdict::unknown;
  std::string name;
  /// Its files are gone after a reboot (tmpfs).
  bool forgets = false;
};

/// By `f_type` of statfs(2). Pure.
FileSystem classify_file_system(std::uint64_t type);

}  // namespace dlock::local
