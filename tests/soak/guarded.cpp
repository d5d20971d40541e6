// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/guarded.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace dlock::soak {
namespace {

/// As it stands in the file; each with the highest token up to it, so that the last one is enough.
struct Entry {
  std::int64_t at;
  std::uint64_t worker;
  std::uint64_t grant;
  std::uint64_t token;
  std::uint64_t highest;
  std::uint64_t accepted;
};

class Opened {
 public:
  explicit Opened(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), file.string());
  }
  ~Opened() { ::close(fd_); }  // and whatever is locked by it
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

GuardedFile::GuardedFile(const std::filesystem::path& folder, const std::string& name)
    : file_(folder / ("guarded-" + name)) {}

void GuardedFile::write(int worker, std::uint64_t grant, std::uint64_t token) const {
  const Opened file(file_);
  while (::flock(file.fd(), LOCK_EX) != 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "flock");
  }
  // Whole entries only: who is killed in the midst of a write has not written.
  const auto entries = ::lseek(file.fd(), 0, SEEK_END) / static_cast<off_t>(sizeof(Entry));
  std::uint64_t highest = 0;
  if (entries > 0) {
    Entry last{};
    if (::pread(file.fd(), &last, sizeof last, (entries - 1) * static_cast<off_t>(sizeof last)) !=
        static_cast<ssize_t>(sizeof last)) {
      throw std::system_error(errno, std::generic_category(), "pread");
    }
    highest = last.highest;
  }
  const bool accepted = token >= highest;
  const Entry entry{BoottimeClock::now().time_since_epoch().count(),
                    static_cast<std::uint64_t>(worker),
                    grant,
                    token,
                    std::max(highest, token),
                    accepted ? 1U : 0U};
  if (::pwrite(file.fd(), &entry, sizeof entry, entries * static_cast<off_t>(sizeof entry)) !=
      static_cast<ssize_t>(sizeof entry)) {
    throw std::system_error(errno, std::generic_category(), "pwrite");
  }
}

std::vector<GuardedWrite> GuardedFile::all() const {
  const Opened file(file_);
  std::vector<GuardedWrite> writes;
  Entry entry{};
  while (::read(file.fd(), &entry, sizeof entry) == static_cast<ssize_t>(sizeof entry)) {
    writes.push_back({TimePoint(Duration(entry.at)), static_cast<int>(entry.worker), entry.grant,
                      entry.token, entry.accepted != 0});
  }
  return writes;
}

}  // namespace dlock::soak
