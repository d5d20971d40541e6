// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/fenced_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>

namespace dlock::core {
namespace {

namespace fs = std::filesystem;

// As the kernel.
constexpr int kMostLinks = 40;

Failure system_failure(int number, std::string text) {
  return {error_code(number, boost::system::system_category()), std::move(text)};
}

/// Where a symlink leads; empty: it is none.
std::optional<std::string> target_of(int folder, const std::string& file) {
  std::array<char, PATH_MAX> text{};
  const auto size = ::readlinkat(folder, file.c_str(), text.data(), text.size());
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

FencedPlace::FencedPlace(const std::string& path) {
  std::error_code ec;
  // A chdir() later does not concern us.
  absolute_ = fs::absolute(path, ec).string();
  if (ec) absolute_ = path;
  const std::lock_guard lock(mutex_);
  look_up();
}

FencedPlace::~FencedPlace() { close(); }

void FencedPlace::close() noexcept {
  if (folder_ >= 0) ::close(folder_);
  folder_ = -1;
}

Failure FencedPlace::find() {
  const std::lock_guard lock(mutex_);
  if (folder_ < 0) {
    if (auto failure = look_up(); failure.error) return failure;
  }
  struct stat now {};
  const bool there = ::stat(folder_path_.c_str(), &now) == 0;
  if (there && now.st_dev == device_ && now.st_ino == inode_) return {};
  if (!there && errno != ENOENT && errno != ENOTDIR) {
    return system_failure(errno, "looking at " + folder_path_);
  }
  return system_failure(ESTALE,
                        fmt::format("the folder {} was moved or replaced since this register "
                                    "was made: a file in another one knows no token",
                                    folder_path_));
}

Failure FencedPlace::look_up() {
  fs::path at = absolute_;
  for (int links = 0; links < kMostLinks; ++links) {
    const auto file = at.filename().string();
    if (file.empty() || file == "." || file == "..") {
      return system_failure(EISDIR, at.string() + " names a folder, not a file");
    }
    if (auto failure = open_folder(at.parent_path().string()); failure.error) return failure;
    const auto target = target_of(folder_, file);
    if (!target) {
      file_ = file;
      return {};
    }
    // An absolute one replaces all that is before it.
    at = fs::path(folder_path_) / *target;
    close();
  }
  return system_failure(ELOOP, absolute_ + " leads through too many symlinks");
}

Failure FencedPlace::open_folder(const std::string& path) {
  std::error_code ec;
  folder_path_ = fs::canonical(path, ec).string();
  if (ec) return system_failure(ec.value(), "opening the folder " + path);
  const int folder = ::open(folder_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat now {};
  if (folder < 0 || ::fstat(folder, &now) != 0) {
    const int number = errno;
    if (folder >= 0) ::close(folder);
    return system_failure(number, "opening the folder " + folder_path_);
  }
  folder_ = folder;
  device_ = now.st_dev;
  inode_ = now.st_ino;
  return {};
}

}  // namespace dlock::core
