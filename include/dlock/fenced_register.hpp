// SPDX-License-Identifier: Apache-2.0
//
// FencedRegister: a file whose content only the newest holder of a lock can replace. It keeps the
// highest token with the content, in one file that is replaced as a whole, so that neither a
// writer that is late nor a crash between any two steps can bring older content back.
//
//   dlock::FencedRegister state("/var/lib/app/leader");
//   state.write(*held.sequencer(), "node7");       // LockError{stale_token}: a newer holder wrote
//   const auto content = state.read();             // {"node7", 17, "orders/42"}
//
// Hazards. Removing the file forgets the token. `<path>.lock` beside it excludes the writers from
// each other. dlock never removes that file. If it is removed during a write, two writers can work
// at once. A writer that is stopped (SIGSTOP) during a write blocks the other writers.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/error.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::core {
class FencedPlace;
}

namespace dlock::inline v0 {

/// The file is one line with token, lock name, size and SHA-256, then the bytes as they were given.
/// Processes of one host may write and read it at the same time; not on a network file system.
/// Thread safety: all members may be called from any thread at the same time, and several objects
/// may name one file.
class FencedRegister {
 public:
  struct Content {
    std::string bytes;
    std::uint64_t token = 0;               ///< with which they were written
    std::optional<std::string> name = {};  ///< the lock's; empty before a write with a Sequencer
  };

  /// Resolves the path once: through all symlinks, including the file itself, and from the working
  /// directory if it is relative. A later chdir() or a switched symlink does not affect this
  /// object, but affects objects that are created after it. Pass one permanent path to all writers.
  /// Does not fail: a call that finds the path unresolved resolves it again, and reports the error.
  /// The folder must exist. Files are created with the umask's permissions. A replaced file keeps
  /// its owner, group and mode (ACLs and extended attributes are not kept).
  explicit FencedRegister(std::string path);

  /// Replaces the content, if no higher token has written; the same one may write any number of
  /// times. When it returns, the content is on the disk. Blocks: for other writers, and the disk.
  /// On a failure the content is the old one or, if the disk failed last, the new one; never a
  /// mixture.
  /// Throws LockError:
  /// - stale_token: a higher token has written;
  /// - corrupt_file: nothing is accepted until the file is repaired or removed by hand;
  /// - invalid_argument: another lock's sequencer has written. Tokens of different locks do not
  ///   compare;
  /// - invalid_argument: the sequencer is a reader's (mode shared: several clients hold it);
  /// - invalid_argument: the token is not below 2^53, or the file has other hard links;
  /// - the system's own code: the file cannot be written. EPERM: its owner or mode cannot be kept.
  ///   ESTALE: its folder was moved or replaced since. ELOOP: a symlink has replaced the file
  ///   since.
  void write(const Sequencer& sequencer, std::string_view bytes);
  /// Same, without a check of the lock's name.
  void write(std::uint64_t token, std::string_view bytes);
  /// The forms with `ec` set it instead of throwing these errors.
  void write(const Sequencer& sequencer, std::string_view bytes, error_code& ec);
  void write(std::uint64_t token, std::string_view bytes, error_code& ec);

  /// Returns the content; empty before the first write. Does not wait for writers.
  /// Throws LockError: corrupt_file, or the system's code.
  std::optional<Content> read() const;

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::shared_ptr<core::FencedPlace> place_;
};

}  // namespace dlock::inline v0
