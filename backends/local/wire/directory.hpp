// SPDX-License-Identifier: Apache-2.0
//
// The lock directory: made when absent, judged (is its file system good for locks? a self-test says
// whether they work at all), and new lock files in it. Everything here may block: helper thread.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backends/local/error.hpp"
#include "backends/local/rules/tickets.hpp"
#include "backends/local/wire/descriptor.hpp"
#include "backends/local/wire/file_system.hpp"
#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {

/// Mode of new files without the option `mode`, less the umask.
inline constexpr mode_t kFileMode = 0666;

/// Deleter for opendir().
struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

/// An open directory; everything in it is reached through the descriptor.
struct Directory {
  std::string path;
  Descriptor descriptor;
  FileSystem file_system;
  BootId boot{};
  dev_t device = 0;  ///< with `inode`: which directory it is, wherever its path leads
  ino_t inode = 0;
  std::optional<mode_t> file_mode;  ///< mode of new files, whatever the umask; empty: kFileMode
  /// How long the path still has to lead here before any grant: place.hpp.
  std::chrono::milliseconds unsettled{0};

  int get() const noexcept { return descriptor.get(); }
  std::string path_of(std::string_view file) const {
    std::string whole;
    whole.reserve(path.size() + 1 + file.size());
    return whole.append(path).append(1, '/').append(file);
  }
};
/// Shared with helper threads that may outlive the caller.
using DirectoryPtr = std::shared_ptr<const Directory>;

struct DirectoryResult {
  DirectoryPtr directory;
  Failure failure;
};

struct DirectorySettings {
  std::optional<mode_t> file_mode;  ///< Directory::file_mode
  /// The store used the path before: a parent that is missing now may return.
  bool was_open = false;
};

/// Makes it when absent, by the umask; its parent must exist. `trust`: the operator answers for the
/// file system's type; the self-test is made all the same. `now_ms`: on the wall clock.
DirectoryResult open_directory(const std::string& path, bool trust, std::int64_t now_ms,
                               const DirectorySettings& settings = {});

/// Creates a file that does not exist, with the directory's mode for files.
SystemResult create_file(const Directory& directory, const std::string& file, LockFile& out);
/// Opens a file for a claim and makes an empty one if there is none. No other process can open the
/// new file before it has its mode.
SystemResult open_or_make(const Directory& directory, const std::string& file, LockFile& out);

/// Creates the file of a lock, whole or not at all, and on disk before it has its name. No failure
/// if another process was quicker. The first ticket is `above + 1`. `unique`: for its temporary
/// name.
Failure create_lock_file(const Directory& directory, const std::string& file,
                         const std::string& lock_name, std::uint64_t above,
                         const std::string& unique);

/// Brings the file's ledger to the disk.
Failure sync_lock_file(const Directory& directory, const std::string& file);

}  // namespace dlock::local
