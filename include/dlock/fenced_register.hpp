// SPDX-License-Identifier: Apache-2.0
//
// FencedRegister: a file whose content only the newest holder of a lock can replace. It keeps the
// highest token with the content, in one file that is replaced as a whole, so that neither a
// writer that is late nor a crash between any two steps can bring older content back.
//
//   dlock::FencedRegister state("/var/lib/app/leader");
//   state.write(*held.sequencer(), "node7");       // LockError{stale_token}: somebody newer wrote
//   const auto content = state.read();             // {"node7", 17, "orders/42"}
//
// Hazards. Removing the file forgets the token. `<path>.lock` beside it keeps writers apart and is
// never removed by us; who removes it while somebody writes parts them. A writer that is stopped
// (SIGSTOP) in the midst of a write lets the others wait.
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
    std::optional<std::string> name = {};  ///< of the lock, once a sequencer was written with
  };

  /// Looks the file up, once: through all symlinks, its own included, and from the working
  /// directory if the path is not absolute. A chdir() or a switched symlink later changes nothing
  /// for this object, but does for one that is made then: give all writers one path that stays.
  /// Does not fail: what could not be looked up is looked up again, and told, by each call. The
  /// folder must exist. Files are made with the umask's rights; a replaced one keeps its owner,
  /// group and mode (ACLs and extended attributes are not kept).
  explicit FencedRegister(std::string path);

  /// Replaces the content, if no higher token has written; the same one may write any number of
  /// times. When it returns, the content is on the disk. Blocks: for other writers, and the disk.
  /// On a failure the content is the old one or, if the disk failed last, the new one; never a
  /// mixture.
  /// Throws LockError: stale_token; corrupt_file, and then nothing is accepted until the file is
  /// mended or removed by hand; invalid_argument if another lock's sequencer has written, as tokens
  /// of different locks do not compare, the sequencer is a reader's (mode shared: several hold it),
  /// the token is not below 2^53, or the file has other hard links; the system's own code if the
  /// file cannot be written: EPERM if its owner or mode cannot be kept, ESTALE if its folder was
  /// moved or replaced since, ELOOP if a symlink was put in the file's place since.
  void write(const Sequencer& sequencer, std::string_view bytes);
  /// Same, without a check of the lock's name.
  void write(std::uint64_t token, std::string_view bytes);
  /// Same, without throwing for these.
  void write(const Sequencer& sequencer, std::string_view bytes, error_code& ec);
  void write(std::uint64_t token, std::string_view bytes, error_code& ec);

  /// Empty: nothing was written yet. Waits for no writer.
  /// Throws LockError: corrupt_file, or the system's code.
  std::optional<Content> read() const;

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::shared_ptr<core::FencedPlace> place_;
};

}  // namespace dlock::inline v0
