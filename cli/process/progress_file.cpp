// SPDX-License-Identifier: Apache-2.0
#include "cli/process/progress_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace dlock::cli {
namespace {

constexpr std::string_view kPrefix = "dlock-progress-";
constexpr std::string_view kFile = "progress";
constexpr std::uint32_t kTouched = IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_MOVED_TO;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::filesystem::path parent() {
  std::error_code ec;
  auto folder = std::filesystem::temp_directory_path(ec);
  if (ec) throw std::system_error(ec, "no folder for the file in DLOCK_PROGRESS; set TMPDIR");
  return folder;
}

/// Returns a descriptor with a lock on the folder, or -1 and errno: EWOULDBLOCK if a living process
/// has the lock, ENOENT if the folder was removed. The kernel releases the lock of a killed
/// process.
int lock_folder(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0) return -1;
  struct stat info {};
  int error = 0;
  if (::fstat(opened, &info) != 0 || ::flock(opened, LOCK_EX | LOCK_NB) != 0) error = errno;
  if (error == 0 && info.st_uid != ::geteuid()) error = EPERM;
  // Another process may have removed it between open() and the lock.
  if (error == 0 && ::access(folder.c_str(), F_OK) != 0) error = errno;
  if (error == 0) return opened;
  ::close(opened);
  errno = error;
  return -1;
}

void remove_left_folders(const std::filesystem::path& from) {
  std::error_code ec;
  auto entry = std::filesystem::directory_iterator(from, ec);
  for (; !ec && entry != std::filesystem::directory_iterator(); entry.increment(ec)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    const int lock = lock_folder(entry->path().string());
    if (lock < 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(entry->path(), ignored);
    ::close(lock);
  }
}

}  // namespace

ProgressFile::ProgressFile() {
  const auto where = parent();
  remove_left_folders(where);
  while (lock_ < 0) {
    folder_ = (where / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(folder_.data()) == nullptr) fail(folder_);
    lock_ = lock_folder(folder_);
    // A process that cleans up may have been faster.
    if (lock_ >= 0 || errno == EWOULDBLOCK || errno == ENOENT) continue;
    const int error = errno;
    ::rmdir(folder_.c_str());
    errno = error;
    fail(folder_);
  }
  path_ = folder_ + "/" + std::string(kFile);
  const int made = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) ::close(made);
  if (made >= 0) watch_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  // The folder is watched, so a new file of that name counts.
  if (watch_ >= 0 && ::inotify_add_watch(watch_, folder_.c_str(), kTouched) >= 0) return;
  const int error = errno;
  const std::string what = made < 0 ? path_ : "inotify (fs.inotify.max_user_instances?)";
  remove();
  errno = error;
  fail(what);
}

ProgressFile::~ProgressFile() { remove(); }

void ProgressFile::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  if (watch_ >= 0) ::close(watch_);
  ::close(lock_);
}

bool ProgressFile::was_touched() noexcept {
  alignas(inotify_event) std::array<char, 4096> bytes{};
  bool any = false;
  for (ssize_t size = 0; (size = ::read(watch_, bytes.data(), bytes.size())) > 0;) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, bytes.data() + at, sizeof event);
      const char* const name = bytes.data() + at + sizeof event;
      const bool is_lost = (event.mask & IN_Q_OVERFLOW) != 0;
      any = any || is_lost || (event.len > 0 && kFile == name);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  return any;
}

}  // namespace dlock::cli
