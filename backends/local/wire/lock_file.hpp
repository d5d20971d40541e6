// SPDX-License-Identifier: Apache-2.0
//
// One open lock file and the kernel's locks on its bytes. OFD locks (`F_OFD_*`): they belong to
// this open file, not to the process, so another open and close of the same file in this process
// does not drop them (fcntl(2) locks would), and the last close, also by `kill -9`, does.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "backends/local/rules/format.hpp"
#include "backends/local/wire/descriptor.hpp"

namespace dlock::local {

/// The result of a system call: `error` is an errno, 0 if it worked.
struct SystemResult {
  int error = 0;
  bool ok() const noexcept { return error == 0; }
};

/// Where the name that a file was opened by leads now.
enum class Stands {
  here,     ///< to the open file
  changed,  ///< to the open file, but with another mode or owner: another process may be refused
            ///< refused
  gone,     ///< to another one, or to none
};

class LockFile {
 public:
  LockFile() = default;
  explicit LockFile(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  /// For a claim: read and write, closed in a fork()ed child.
  static SystemResult open(int directory, const char* file, LockFile& out);
  /// For reading only; its close does not wake waiters.
  static SystemResult open_to_look(int directory, const char* file, LockFile& out);

  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int descriptor() const noexcept { return descriptor_.get(); }
  void close() noexcept { descriptor_.reset(); }

  /// Locks a byte, or returns EAGAIN: never waits.
  SystemResult try_lock(std::uint64_t byte) noexcept;
  /// As try_lock(), beside other shared locks. Converts an exclusive lock of this file.
  SystemResult try_lock_shared(std::uint64_t byte) noexcept;
  void unlock(std::uint64_t byte) noexcept;
  /// Finds a byte in [begin, end) that another open file has locked; not necessarily the first one.
  SystemResult find_locked(std::uint64_t begin, std::uint64_t end,
                           std::optional<std::uint64_t>& found) const noexcept {
    return find(begin, end, found, nullptr);
  }
  /// As above; `shared`: whether it is locked with try_lock_shared().
  SystemResult find_locked(std::uint64_t begin, std::uint64_t end,
                           std::optional<std::uint64_t>& found, bool& shared) const noexcept {
    return find(begin, end, found, &shared);
  }
  /// Finds a byte that is locked with try_lock().
  SystemResult find_exclusive(std::uint64_t begin, std::uint64_t end,
                              std::optional<std::uint64_t>& found) const noexcept;

  /// Returns what there is, shorter at the end of the file.
  SystemResult read(Bytes out, std::uint64_t offset, std::size_t& size) const noexcept;
  SystemResult write(ConstBytes bytes, std::uint64_t offset) noexcept;
  /// As write(), and the bytes are on disk when this returns. If the process is killed meanwhile,
  /// other processes that wait for the guard have not seen the bytes before. May block: helper
  /// thread.
  SystemResult write_through(ConstBytes bytes, std::uint64_t offset) noexcept;

  /// For a file from open(). `directory` as for openat(2).
  SystemResult look_at_name(int directory, const char* file, Stands& stands) const noexcept;

 private:
  /// The file's state when it was opened. While it is open, no other file gets its number.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    mode_t mode = 0;
    uid_t user = 0;
    gid_t group = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity(const struct stat& info) noexcept;
  SystemResult find(std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t>& found,
                    bool* shared) const noexcept;

  Descriptor descriptor_;
  Identity opened_;
};

/// The end of all tickets' bytes.
inline constexpr std::uint64_t kEveryTicket = kTicketBase + kLastTicket + 1;

}  // namespace dlock::local
