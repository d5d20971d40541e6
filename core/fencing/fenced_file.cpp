// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/fenced_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "dlock/sequencer.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::core {
namespace {

constexpr std::string_view kFirstWords = "dlock-register=1 sha256=";
constexpr std::string_view kRegisterStamp = "dlock-register=";
constexpr unsigned kRegisterFormat = 1;
constexpr std::size_t kDigest = 64;
/// Longer than any first line: a lock name has 512 bytes, each three when it is escaped.
constexpr std::size_t kLongestHeader = 2048;
constexpr std::size_t kChunk = 65'536;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// A symlink in the file's place was put there after the path was resolved.
int open_file(int folder, const std::string& file, int flags) {
  while (true) {
    const int descriptor = ::openat(folder, file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
  }
}

/// Returns the failure of the call that has just failed.
Failure system_failure(std::string_view doing, const std::string& path) {
  const error_code code(errno, boost::system::system_category());
  return {code, fmt::format("{} {}", doing, path)};
}

std::string escape_lock(std::string_view lock) {
  return percent_escape(lock, [](unsigned char c) { return c > 0x20 && c < 0x7F; });
}

/// The fields that the digest covers beside the bytes.
std::string fields(const FencedContent& content) {
  return fmt::format("token={} lock={} size={}\n", content.token, escape_lock(content.lock),
                     content.bytes.size());
}

std::string digest(const std::string& described, std::string_view bytes) {
  std::string all = described;
  all.append(bytes);
  return sha256_hex(all);
}

/// `key=VALUE` up to the next blank, or the line's end.
std::optional<std::string_view> take_field(std::string_view& line, std::string_view key) {
  if (line.substr(0, key.size()) != key) return std::nullopt;
  line.remove_prefix(key.size());
  const auto end = std::min(line.find(' '), line.size());
  const auto value = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return value;
}

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Keeps other writers out, also of this process, until it is destroyed.
class WriterLock {
 public:
  /// A file that was replaced during the wait excludes no other writer: lock the present file.
  Failure take(const FencedPlace& place) {
    const auto file = place.file() + ".lock";
    const auto path = place.path_of(file);
    while (true) {
      file_.emplace(open_file(place.folder(), file, O_RDWR | O_CREAT));
      if (!file_->is_open()) return system_failure("opening", path);
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      while (::fcntl(file_->get(), F_OFD_SETLKW, &lock) != 0) {
        if (errno != EINTR) return system_failure("locking", path);
      }
      struct stat ours = {};
      struct stat present = {};
      if (::fstat(file_->get(), &ours) != 0) return system_failure("looking at", path);
      const bool there =
          ::fstatat(place.folder(), file.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0;
      if (there && ours.st_ino == present.st_ino && ours.st_dev == present.st_dev) return {};
    }
  }

  // Unlocked, not only closed: a process that another thread has just fork()ed shares it.
  ~WriterLock() {
    if (!file_ || !file_->is_open()) return;
    struct flock lock = {};
    lock.l_type = F_UNLCK;
    ::fcntl(file_->get(), F_OFD_SETLK, &lock);
  }
  WriterLock() = default;
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  std::optional<Descriptor> file_;
};

Failure judge(const FencedContent& present, const FencedContent& wanted) {
  if (!wanted.lock.empty() && !present.lock.empty() && wanted.lock != present.lock) {
    return make_failure(errc::invalid_argument,
                        fmt::format("the register belongs to the lock '{}', not to '{}': tokens of "
                                    "different locks do not compare",
                                    present.lock, wanted.lock));
  }
  if (wanted.token < present.token) {
    return make_failure(errc::stale_token,
                        fmt::format("token {} is below {}, which has written already", wanted.token,
                                    present.token));
  }
  return {};
}

Failure write_all(int file, std::string_view bytes, const std::string& path,
                  const BeforeStep& before) {
  while (!bytes.empty()) {
    before("write");
    const auto written = ::write(file, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_failure("writing", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// Copies the owner and the permissions of the replaced file to the new one. If that is not
/// permitted, nothing is written: other processes would be shut out, or let in.
Failure give_rights(const FencedPlace& place, int file, const std::string& path) {
  struct stat old = {};
  struct stat ours = {};
  if (::fstatat(place.folder(), place.file().c_str(), &old, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Failure{} : system_failure("looking at", place.path_of(place.file()));
  }
  if (::fstat(file, &ours) != 0) return system_failure("looking at", path);
  if (old.st_nlink > 1) {
    return make_failure(errc::invalid_argument,
                        fmt::format("{} has {} names (hard links): the others would keep the old "
                                    "content and its token",
                                    place.path_of(place.file()), old.st_nlink));
  }
  const bool same_owner = old.st_uid == ours.st_uid && old.st_gid == ours.st_gid;
  if (!same_owner && ::fchown(file, old.st_uid, old.st_gid) != 0) {
    return system_failure(fmt::format("setting the owner {}:{} of", old.st_uid, old.st_gid), path);
  }
  if (::fchmod(file, old.st_mode & 07777) != 0) return system_failure("setting the mode of", path);
  return {};
}

/// A new file beside the old one, whole and on the disk.
Failure write_new(const FencedPlace& place, const std::string& name, std::string_view bytes,
                  const BeforeStep& before) {
  before("create");
  const auto path = place.path_of(name);
  // Removes the file of a writer that died: this process has the lock, and that file's owner may
  // differ.
  ::unlinkat(place.folder(), name.c_str(), 0);
  Descriptor file(open_file(place.folder(), name, O_WRONLY | O_CREAT | O_EXCL));
  if (!file.is_open()) return system_failure("creating", path);
  if (auto failure = give_rights(place, file.get(), path); failure.error) return failure;
  if (auto failure = write_all(file.get(), bytes, path, before); failure.error) return failure;
  before("fsync");
  if (::fsync(file.get()) != 0) return system_failure("fsync of", path);
  return {};
}

Failure fsync_folder(const FencedPlace& place) {
  if (::fsync(place.folder()) == 0) return {};
  return system_failure("the content is written, but may not outlive a power cut: fsync of",
                        place.folder_path());
}

}  // namespace

std::string encode_fenced(const FencedContent& content) {
  const auto described = fields(content);
  return fmt::format("{}{} {}{}", kFirstWords, digest(described, content.bytes), described,
                     content.bytes);
}

std::string decode_fenced(std::string_view file, FencedContent& content) {
  if (file.empty()) return "it is empty";
  const auto end = file.substr(0, kLongestHeader).find('\n');
  auto line = file.substr(0, end);
  auto newer = newer_format("it", file, kRegisterStamp, kRegisterFormat);
  if (!newer.empty()) return newer;
  if (end == file.npos || line.substr(0, kFirstWords.size()) != kFirstWords) {
    return "it does not begin as a register does: another program's, or its first line is cut";
  }
  line.remove_prefix(kFirstWords.size());
  const auto sha = line.substr(0, kDigest);
  line.remove_prefix(std::min(kDigest + 1, line.size()));
  const auto token = take_field(line, "token=");
  const auto lock = take_field(line, "lock=");
  const auto size = take_field(line, "size=");
  const auto token_number = to_number(token.value_or(""));
  const auto size_number = to_number(size.value_or(""));
  if (!token_number || !lock || !size_number || !line.empty() || *token_number >= kTokenEnd) {
    return "its first line was altered";
  }
  const auto bytes = file.substr(end + 1);
  if (bytes.size() != *size_number) {
    return fmt::format("it has {} bytes of content where {} were written", bytes.size(),
                       *size_number);
  }
  FencedContent found{std::string(bytes), *token_number, percent_unescape(*lock)};
  const auto described = fields(found);
  // One content has one first line.
  if (file.substr(0, end + 1) != fmt::format("{}{} {}", kFirstWords, sha, described)) {
    return "its first line was altered";
  }
  if (digest(described, bytes) != sha) return "its content was altered (SHA-256)";
  content = std::move(found);
  return {};
}

Failure read_fenced(FencedPlace& place, std::optional<FencedContent>& content) {
  content.reset();
  if (auto failure = place.find(); failure.error) return failure;
  const auto path = place.path_of(place.file());
  // Not blocked by a FIFO of that name.
  const Descriptor file(open_file(place.folder(), place.file(), O_RDONLY | O_NONBLOCK));
  if (!file.is_open()) return errno == ENOENT ? Failure{} : system_failure("opening", path);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return system_failure("looking at", path);
  if (!S_ISREG(info.st_mode)) {
    return make_failure(errc::corrupt_file, path + ": it is not a regular file");
  }
  std::string all;
  std::array<char, kChunk> chunk{};
  while (true) {
    const auto got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("reading", path);
    if (got == 0) break;
    all.append(chunk.data(), static_cast<std::size_t>(got));
  }
  FencedContent found;
  if (const auto wrong = decode_fenced(all, found); !wrong.empty()) {
    return make_failure(errc::corrupt_file,
                        fmt::format("{}: {}; nothing is written until it is mended, or removed "
                                    "together with what its token protected",
                                    path, wrong));
  }
  content = std::move(found);
  return {};
}

Failure write_fenced(FencedPlace& place, const FencedContent& content,
                     const BeforeStep& before_step) {
  const BeforeStep before = before_step ? before_step : [](std::string_view) {};
  if (auto failure = place.find(); failure.error) return failure;
  before("lock");
  WriterLock lock;
  if (auto failure = lock.take(place); failure.error) return failure;
  before("read");
  std::optional<FencedContent> present;
  if (auto failure = read_fenced(place, present); failure.error) return failure;
  FencedContent wanted = content;
  if (present) {
    if (auto failure = judge(*present, content); failure.error) return failure;
    if (wanted.lock.empty()) wanted.lock = present->lock;
  }
  const auto temporary = place.file() + ".new";
  auto failure = write_new(place, temporary, encode_fenced(wanted), before);
  before("rename");
  if (!failure.error &&
      ::renameat(place.folder(), temporary.c_str(), place.folder(), place.file().c_str()) != 0) {
    failure = system_failure("renaming to", place.path_of(place.file()));
  }
  if (failure.error) {
    ::unlinkat(place.folder(), temporary.c_str(), 0);
    return failure;
  }
  before("fsync folder");
  failure = fsync_folder(place);
  before("unlock");
  return failure;
}

}  // namespace dlock::core
