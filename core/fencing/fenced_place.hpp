// SPDX-License-Identifier: Apache-2.0
//
// Where a FencedRegister's file is: looked up once, through all symlinks, and from then on reached
// by the open folder alone. A path that is looked up at each write leads to another file after a
// chdir() or a switched symlink, and that one knows no token.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>

#include "dlock/spi/answers.hpp"

namespace dlock::core {

/// Thread safety: all members may be called from any thread at the same time.
class FencedPlace {
 public:
  /// Resolves the path; find() resolves it again, and reports a failure.
  explicit FencedPlace(const std::string& path);
  ~FencedPlace();
  FencedPlace(const FencedPlace&) = delete;
  FencedPlace& operator=(const FencedPlace&) = delete;

  /// A clear error: the folder is open, and its path still leads to it.
  Failure find();

  // After a find() without failure.
  int folder() const noexcept { return folder_; }
  const std::string& file() const noexcept { return file_; }  ///< its name in the folder
  std::string path_of(const std::string& file) const { return folder_path_ + "/" + file; }
  const std::string& folder_path() const noexcept { return folder_path_; }

 private:
  Failure look_up();
  Failure open_folder(const std::string& path);
  void close() noexcept;

  std::mutex mutex_;
  std::string absolute_;  ///< as it was given, from the root
  std::string folder_path_;
  std::string file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int folder_ = -1;
};

}  // namespace dlock::core
