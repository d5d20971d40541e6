// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace dlock::local {
namespace {

struct flock range(short type, std::uint64_t begin, std::uint64_t size) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(begin);
  lock.l_len = static_cast<off_t>(size);
  return lock;
}

SystemResult take(int descriptor, struct flock lock) {
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return {};
  // POSIX allows either.
  return {errno == EACCES ? EAGAIN : errno};
}

SystemResult last_error() { return {errno}; }

SystemResult open_as(int directory, const char* file, int flags, Descriptor::Kind kind,
                     LockFile& out) {
  const int number = ::openat(directory, file, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
  if (number < 0) return last_error();
  out = LockFile(Descriptor(number, kind));
  return {};
}

}  // namespace

SystemResult LockFile::open(int directory, const char* file, LockFile& out) {
  const auto opened = open_as(directory, file, O_RDWR, Descriptor::Kind::lock, out);
  if (!opened.ok()) return opened;
  struct stat info {};
  if (::fstat(out.descriptor(), &info) != 0) {
    const auto failed = last_error();
    out.close();
    return failed;
  }
  out.opened_ = identity(info);
  return {};
}

SystemResult LockFile::open_to_look(int directory, const char* file, LockFile& out) {
  return open_as(directory, file, O_RDONLY | O_NONBLOCK, Descriptor::Kind::plain, out);
}

SystemResult LockFile::try_lock(std::uint64_t byte) noexcept {
  return take(descriptor(), range(F_WRLCK, byte, 1));
}

SystemResult LockFile::try_lock_shared(std::uint64_t byte) noexcept {
  return take(descriptor(), range(F_RDLCK, byte, 1));
}

void LockFile::unlock(std::uint64_t byte) noexcept {
  auto lock = range(F_UNLCK, byte, 1);
  ::fcntl(descriptor(), F_OFD_SETLK, &lock);
}

SystemResult LockFile::find(std::uint64_t begin, std::uint64_t end,
                            std::optional<std::uint64_t>& found, bool* shared) const noexcept {
  found.reset();
  if (begin >= end) return {};
  auto lock = range(F_WRLCK, begin, end - begin);
  if (::fcntl(descriptor(), F_OFD_GETLK, &lock) != 0) return last_error();
  if (lock.l_type != F_UNLCK) found = static_cast<std::uint64_t>(lock.l_start);
  if (shared != nullptr) *shared = lock.l_type == F_RDLCK;
  return {};
}

// A reader's query finds only writers.
SystemResult LockFile::find_exclusive(std::uint64_t begin, std::uint64_t end,
                                      std::optional<std::uint64_t>& found) const noexcept {
  found.reset();
  if (begin >= end) return {};
  auto lock = range(F_RDLCK, begin, end - begin);
  if (::fcntl(descriptor(), F_OFD_GETLK, &lock) != 0) return last_error();
  if (lock.l_type != F_UNLCK) found = static_cast<std::uint64_t>(lock.l_start);
  return {};
}

SystemResult LockFile::read(Bytes out, std::uint64_t offset, std::size_t& size) const noexcept {
  const auto got = ::pread(descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
  if (got < 0) return last_error();
  size = static_cast<std::size_t>(got);
  return {};
}

SystemResult LockFile::write(ConstBytes bytes, std::uint64_t offset) noexcept {
  const auto put = ::pwrite(descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (put < 0) return last_error();
  // A short write: no space for the rest.
  return {static_cast<std::size_t>(put) == bytes.size() ? 0 : ENOSPC};
}

// One call: a killed process ends after it, and only then is the guard free.
SystemResult LockFile::write_through(ConstBytes bytes, std::uint64_t offset) noexcept {
  iovec part{};
  part.iov_base = const_cast<unsigned char*>(bytes.data());  // NOLINT: the system only reads it
  part.iov_len = bytes.size();
  const auto put = ::pwritev2(descriptor(), &part, 1, static_cast<off_t>(offset), RWF_DSYNC);
  if (put < 0) return last_error();
  return {static_cast<std::size_t>(put) == bytes.size() ? 0 : ENOSPC};
}

LockFile::Identity LockFile::identity(const struct stat& info) noexcept {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .mode = info.st_mode,
          .user = info.st_uid,
          .group = info.st_gid};
}

SystemResult LockFile::look_at_name(int directory, const char* file,
                                    Stands& stands) const noexcept {
  struct stat info {};
  stands = Stands::gone;
  if (::fstatat(directory, file, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? SystemResult{} : last_error();
  }
  const auto named = identity(info);
  if (named.inode != opened_.inode || named.device != opened_.device) return {};
  stands = named == opened_ ? Stands::here : Stands::changed;
  return {};
}

}  // namespace dlock::local
