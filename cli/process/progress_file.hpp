// SPDX-License-Identifier: Apache-2.0
//
// The file by which the command of `dlock run` says that its work comes on: it touches it, or
// writes to it. An empty file of ours alone, gone with us.
#pragma once

#include <string>

namespace dlock::cli {

class ProgressFile {
 public:
  /// Throws std::system_error.
  ProgressFile();
  ~ProgressFile();
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Readable once it was touched.
  int descriptor() const noexcept { return watch_; }
  /// Whether it was touched since the last call.
  bool was_touched() noexcept;

 private:
  std::string path_;
  int watch_ = -1;
};

}  // namespace dlock::cli
