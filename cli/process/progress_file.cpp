// SPDX-License-Identifier: Apache-2.0
#include "cli/process/progress_file.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dlock::cli {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string place() {
  std::error_code ec;
  const auto folder = std::filesystem::temp_directory_path(ec);
  if (ec) throw std::system_error(ec, "no folder for the file in DLOCK_PROGRESS; set TMPDIR");
  return (folder / "dlock-progress-XXXXXX").string();
}

}  // namespace

ProgressFile::ProgressFile() : path_(place()) {
  const int made = ::mkostemp(path_.data(), O_CLOEXEC);
  if (made < 0) fail(path_);
  ::close(made);
  watch_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  const bool watches =
      watch_ >= 0 && ::inotify_add_watch(watch_, path_.c_str(), IN_ATTRIB | IN_MODIFY) >= 0;
  if (watches) return;
  const int error = errno;
  ::unlink(path_.c_str());
  if (watch_ >= 0) ::close(watch_);
  errno = error;
  fail("inotify (fs.inotify.max_user_instances?)");
}

ProgressFile::~ProgressFile() {
  ::unlink(path_.c_str());
  ::close(watch_);
}

bool ProgressFile::was_touched() noexcept {
  std::array<char, 4096> events{};
  bool any = false;
  while (::read(watch_, events.data(), events.size()) > 0) any = true;
  return any;
}

}  // namespace dlock::cli
