// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "backends/local/rules/format.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "backends/local/wire/place.hpp"

namespace dlock::local {
namespace {

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 || errno != ENOENT;
}

/// Returns the first directory on the way to `path` that does not exist. Empty: all exist.
std::string missing_parent(const std::filesystem::path& path) {
  std::string missing;
  for (auto parent = path.parent_path(); !parent.empty(); parent = parent.parent_path()) {
    if (exists(parent.string())) break;
    missing = parent.string();
  }
  return missing;
}

/// Makes the directory alone: a parent that is missing is a wrong path, or not mounted yet.
Failure make_directory(const std::string& path, bool was_open) {
  if (exists(path) || ::mkdir(path.c_str(), 0777) == 0) return {};
  int error = errno;
  if (error == EEXIST) {
    if (exists(path)) return {};
    error = ENOENT;  // a link to a path that does not exist
  }
  if (error != ENOENT) return system_failure(error, path);
  const auto missing = missing_parent(path);
  return make_failure(
      was_open ? Error::system : Error::directory_unusable,
      missing.empty()
          ? fmt::format("cannot create {}: {}", path, std::generic_category().message(error))
          : fmt::format("cannot create {}: {} does not exist; create it, or correct the path", path,
                        missing));
}

Failure read_boot_id(BootId& boot) {
  const char* const source = "/proc/sys/kernel/random/boot_id";
  const Descriptor file(::open(source, O_RDONLY | O_CLOEXEC));
  if (!file && (errno == EMFILE || errno == ENFILE)) return system_failure(errno, source);
  std::array<char, 64> text{};
  const auto size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  std::size_t digits = 0;
  for (ssize_t i = 0; i < size && digits < 2 * boot.size(); ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    auto& byte = boot[digits / 2];
    byte = static_cast<unsigned char>((byte << 4) | value);
    ++digits;
  }
  if (digits == 2 * boot.size()) return {};
  return make_failure(Error::no_boot_id,
                      fmt::format("{} cannot be read, and without it dlock cannot know whether "
                                  "tokens were lost in a power cut",
                                  source));
}

Failure judge(const std::string& path, int directory, bool trust, FileSystem& file_system) {
  struct statfs info {};
  if (::fstatfs(directory, &info) != 0) return system_failure(errno, path);
  // f_type is signed on some machines; the numbers are 32 bits wide.
  file_system = classify_file_system(static_cast<std::uint32_t>(info.f_type));
  if (file_system.verdict == FileSystem::Verdict::good || trust) return {};
  const char* const why = file_system.verdict == FileSystem::Verdict::refused
                              ? "locks on it may be kept on this machine only, or not at all"
                              : "it is not known to keep locks";
  return make_failure(
      Error::file_system_refused,
      fmt::format("{} is on a file system of {}, and {}: choose a directory on a local disk, or a "
                  "server (zookeeper://...). Set trust_filesystem=true only if you know that "
                  "advisory locks and inotify on it reach every process that uses it",
                  path, file_system.name, why));
}

/// A file that is gone again at the end.
class Probe {
 public:
  Probe(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() { ::unlinkat(directory_, name_.c_str(), 0); }

  Failure create(const std::string& path) const {
    const Descriptor made(::openat(directory_, name_.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
    return made ? Failure{} : system_failure(errno, path);
  }
  const char* name() const { return name_.c_str(); }

 private:
  int directory_;
  std::string name_;
};

// Two openers of one file must exclude each other, each way a lock is asked for here.
Failure test_locks(const std::string& path, int directory) {
  const Probe probe(directory, fmt::format(".probe-{}-{}", ::getpid(), ::gettid()));
  ::unlinkat(directory, probe.name(), 0);  // left by a killed process with the same pid
  if (auto failure = probe.create(path); failure.error) return failure;
  LockFile first;
  LockFile second;
  for (auto* file : {&first, &second}) {
    if (const auto opened = LockFile::open(directory, probe.name(), *file); !opened.ok()) {
      return system_failure(opened.error, path);
    }
  }
  const auto byte = kTicketBase + 1;
  std::optional<std::uint64_t> seen;
  if (const auto locked = first.try_lock(byte); !locked.ok()) {
    return make_failure(Error::locks_not_kept,
                        system_failure(locked.error, path).text + ": OFD locks do not work there");
  }
  const bool excluded = second.try_lock(byte).error == EAGAIN;
  const bool shown = second.find_locked(kTicketBase, kEveryTicket, seen).ok() && seen == byte;
  first.unlock(byte);
  const bool freed = second.try_lock(byte).ok();
  if (excluded && shown && freed) return {};
  return make_failure(Error::locks_not_kept,
                      fmt::format("{}: two openers of one file did not exclude each other; choose "
                                  "a directory on a local disk",
                                  path));
}

}  // namespace

SystemResult create_file(const Directory& directory, const std::string& file, LockFile& out) {
  Descriptor made(::openat(directory.get(), file.c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                           directory.file_mode.value_or(kFileMode)));
  if (!made) return {errno};
  if (directory.file_mode && ::fchmod(made.get(), *directory.file_mode) != 0) {
    const int error = errno;
    ::unlinkat(directory.get(), file.c_str(), 0);
    return {error};
  }
  out = LockFile(std::move(made));
  return {};
}

SystemResult open_or_make(const Directory& directory, const std::string& file, LockFile& out) {
  const auto opened = LockFile::open(directory.get(), file.c_str(), out);
  if (opened.error != ENOENT) return opened;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto temporary = fmt::format(".new-{}-{}-{}", ::getpid(), ::gettid(), now);
  LockFile made;
  if (const auto created = create_file(directory, temporary, made); !created.ok()) return created;
  const bool linked =
      ::linkat(directory.get(), temporary.c_str(), directory.get(), file.c_str(), 0) == 0;
  const int error = linked || errno == EEXIST ? 0 : errno;
  ::unlinkat(directory.get(), temporary.c_str(), 0);
  if (error != 0) return {error};
  return LockFile::open(directory.get(), file.c_str(), out);
}

DirectoryResult open_directory(const std::string& path, bool trust, std::int64_t now_ms,
                               const DirectorySettings& settings) {
  DirectoryResult result;
  if (result.failure = make_directory(path, settings.was_open); result.failure.error) return result;
  auto directory = std::make_shared<Directory>();
  directory->path = path;
  directory->file_mode = settings.file_mode;
  directory->descriptor = Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory->descriptor) {
    result.failure = system_failure(errno, path);
    return result;
  }
  struct stat info {};
  if (::fstat(directory->get(), &info) != 0) {
    result.failure = system_failure(errno, path);
    return result;
  }
  directory->device = info.st_dev;
  directory->inode = info.st_ino;
  auto& failure = result.failure;
  failure = judge(path, directory->get(), trust, directory->file_system);
  if (!failure.error) failure = read_boot_id(directory->boot);
  if (!failure.error) failure = test_locks(path, directory->get());
  if (!failure.error) directory->unsettled = mark_path(*directory, now_ms);
  if (!failure.error) result.directory = std::move(directory);
  return result;
}

// Written and synced under another name first: a power cut leaves a whole file or none, so an empty
// or short one is always damage.
Failure create_lock_file(const Directory& directory, const std::string& file,
                         const std::string& lock_name, std::uint64_t above,
                         const std::string& unique) {
  const std::string temporary = ".new-" + unique;
  const auto fail = [&](int number) {
    ::unlinkat(directory.get(), temporary.c_str(), 0);
    return system_failure(number, directory.path_of(file));
  };
  LockFile made;
  if (const auto created = create_file(directory, temporary, made); !created.ok()) {
    return system_failure(created.error, directory.path_of(file));
  }
  std::vector<unsigned char> bytes(kNewFileSize, 0);
  encode_front(new_ledger(above, directory.boot), lock_name, Bytes(bytes).first(kFrontSize));
  if (const auto written = made.write(bytes, 0); !written.ok()) return fail(written.error);
  if (::fsync(made.descriptor()) != 0) return fail(errno);
  if (::linkat(directory.get(), temporary.c_str(), directory.get(), file.c_str(), 0) != 0 &&
      errno != EEXIST) {
    return fail(errno);
  }
  ::unlinkat(directory.get(), temporary.c_str(), 0);
  if (::fsync(directory.get()) != 0) return system_failure(errno, directory.path);
  return {};
}

Failure sync_lock_file(const Directory& directory, const std::string& file) {
  LockFile opened;
  if (const auto result = LockFile::open_to_look(directory.get(), file.c_str(), opened);
      !result.ok()) {
    return system_failure(result.error, directory.path_of(file));
  }
  if (::fdatasync(opened.descriptor()) != 0) {
    return system_failure(errno, directory.path_of(file));
  }
  return {};
}

}  // namespace dlock::local
