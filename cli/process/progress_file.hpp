// SPDX-License-Identifier: Apache-2.0
//
// The file by which the command of `dlock run` shows progress: the command touches it, writes to
// it, or replaces it by rename. It is in a folder of its own, which is removed at the end.
#pragma once

#include <string>

namespace dlock::cli {

class ProgressFile {
 public:
  /// Removes the folders of killed processes. Throws std::system_error.
  ProgressFile();
  ~ProgressFile();
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Readable once it was touched.
  int descriptor() const noexcept { return watch_; }
  /// Returns whether it was touched since the last call.
  bool was_touched() noexcept;

 private:
  void remove() noexcept;

  std::string folder_;
  std::string path_;
  int lock_ = -1;  ///< the folder, locked while this process lives
  int watch_ = -1;
};

}  // namespace dlock::cli
