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

/// What a system call came to: `error` is an errno, 0 if it worked.
struct SystemResult {
  int error = 0;
  bool ok() const noexcept { return error == 0; }
};

/// Where a name leads that a file was opened by.
enum class Stands {
  here,     ///< to the open file
  changed,  ///< to the open file, but its mode or owner are others now: whoever opens it may be
            ///< refused
  gone,     ///< to another one, or to none
};

class LockFile {
 public:
  LockFile() = default;
  explicit LockFile(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  /// For a claim: read and write, closed in a fork()ed child.
  static SystemResult open(int directory, const char* file, LockFile& out);
  /// To look only; does not wake anybody when closed.
  static SystemResult open_to_look(int directory, const char* file, LockFile& out);

  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  int descriptor() const noexcept { return descriptor_.get(); }
  void close() noexcept { descriptor_.reset(); }

  /// Takes a byte, or says EAGAIN: never waits.
  SystemResult try_lock(std::uint64_t byte) noexcept;
  /// Likewise, beside others who take it so. A byte that is ours becomes one that is ours so.
  SystemResult try_lock_shared(std::uint64_t byte) noexcept;
  void unlock(std::uint64_t byte) noexcept;
  /// A byte in [begin, end) that somebody else has locked; not necessarily the first one.
  SystemResult find_locked(std::uint64_t begin, std::uint64_t end,
                           std::optional<std::uint64_t>& found) const noexcept {
    return find(begin, end, found, nullptr);
  }
  /// Likewise, and whether it is locked as try_lock_shared() does it.
  SystemResult find_locked(std::uint64_t begin, std::uint64_t end,
                           std::optional<std::uint64_t>& found, bool& shared) const noexcept {
    return find(begin, end, found, &shared);
  }
  /// Likewise, of those that are not locked so.
  SystemResult find_exclusive(std::uint64_t begin, std::uint64_t end,
                              std::optional<std::uint64_t>& found) const noexcept;

  /// Returns what there is, shorter at the end of the file.
  SystemResult read(Bytes out, std::uint64_t offset, std::size_t& size) const noexcept;
  SystemResult write(ConstBytes bytes, std::uint64_t offset) noexcept;
  /// The same, and it is on disk when this returns; also when the process is killed meanwhile, it
  /// was not seen by others before, as far as they wait for the guard. May block: helper thread.
  SystemResult write_through(ConstBytes bytes, std::uint64_t offset) noexcept;

  /// Of a file from open(). `directory` as for openat(2).
  SystemResult look_at_name(int directory, const char* file, Stands& stands) const noexcept;

 private:
  /// As it was when it was opened. While it is open, no other file gets its number.
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
