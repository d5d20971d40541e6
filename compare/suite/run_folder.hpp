// SPDX-License-Identifier: Apache-2.0
//
// The folder in which a run keeps everything: servers' data, sockets, peers' programs. It is locked
// as long as the run lives, so the next run can tell one that was killed, and removes what it left.
#pragma once

#include <filesystem>

namespace dlock::compare {

class RunFolder {
 public:
  /// Below $TMPDIR (or /tmp). Throws std::system_error.
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void remove() noexcept;

  /// Removes the folders of runs that are gone; how many.
  static int sweep();

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace dlock::compare
