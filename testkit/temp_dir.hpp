// SPDX-License-Identifier: Apache-2.0
//
// A folder that lives as long as the object: made below $TMPDIR (or /tmp), removed with everything
// in it at the end. DLOCK_KEEP_TEMP=1 keeps it, to look at what a failed test left.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dlock::testkit {

/// Distinct objects are independent; a shared one is not protected.
class TempDir {
 public:
  /// Throws std::system_error when the folder cannot be made.
  explicit TempDir(std::string_view prefix = "dlock-test");
  /// Below `parent` instead.
  TempDir(std::string_view prefix, const std::filesystem::path& parent);
  ~TempDir();
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  void remove() noexcept;

  std::filesystem::path path_;
};

/// Writes a whole file; throws std::system_error when that fails.
void write_file(const std::filesystem::path& file, std::string_view content);

/// Reads a whole file; throws std::system_error when that fails.
std::string read_file(const std::filesystem::path& file);

}  // namespace dlock::testkit
