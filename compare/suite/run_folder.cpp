// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>

namespace dlock::compare {

namespace {

constexpr const char* kPrefix = "dlock-compare-run-";

std::filesystem::path parent() {
  const char* base = std::getenv("TMPDIR");
  return base != nullptr && *base != '\0' ? base : "/tmp";
}

/// The folder itself is what is locked: there is no moment at which it has no lock file yet.
int lock_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return -1;
  struct stat info {};
  if (::fstat(descriptor, &info) == 0 && info.st_uid == ::geteuid() &&
      ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

}  // namespace

RunFolder::RunFolder() {
  // Between making and locking it another run may have swept it away: then once more.
  while (true) {
    std::string pattern = (parent() / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot make " + pattern);
    }
    lock_ = lock_folder(pattern);
    path_ = pattern;
    std::error_code error;
    if (lock_ >= 0 && std::filesystem::exists(path_, error)) return;
    if (lock_ >= 0) ::close(lock_);
  }
}

RunFolder::~RunFolder() {
  remove();
  ::close(lock_);
}

// Servers that were just killed may still be writing: once more, then.
void RunFolder::remove() noexcept {
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (!std::filesystem::exists(path_, error)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int RunFolder::sweep() {
  int removed = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent(), error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;  // somebody's run is under way
    std::filesystem::remove_all(entry.path(), error);
    ::close(lock);
    ++removed;
  }
  return removed;
}

}  // namespace dlock::compare
