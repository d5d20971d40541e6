// SPDX-License-Identifier: Apache-2.0
#include "testkit/power_cut.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <tuple>

namespace dlock::testkit {
namespace {

/// Device, inode, and when it was made: a number is used again.
using Identity = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::uint32_t>;
using Names = std::map<std::string, Identity>;

std::mutex mutex;
std::atomic<int> failing{0};

std::map<Identity, std::string>& synced_files() {
  static std::map<Identity, std::string> files;
  return files;
}

std::map<Identity, Names>& synced_folders() {
  static std::map<Identity, Names> folders;
  return folders;
}

/// `path` empty: the open file itself.
std::optional<struct statx> look_at(int descriptor, const char* path) {
  struct statx found {};
  const int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
  if (::statx(descriptor, path, flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return {};
  return found;
}

Identity identity_of(const struct statx& file) {
  const std::uint64_t device = std::uint64_t{file.stx_dev_major} << 32 | file.stx_dev_minor;
  return {device, file.stx_ino, file.stx_btime.tv_sec, file.stx_btime.tv_nsec};
}

std::string content_of(int descriptor) {
  std::string content;
  std::array<char, 4096> part{};
  for (;;) {
    const auto got =
        ::pread(descriptor, part.data(), part.size(), static_cast<off_t>(content.size()));
    if (got <= 0) return content;
    content.append(part.data(), static_cast<std::size_t>(got));
  }
}

Names names_in(int descriptor) {
  Names names;
  // A descriptor of its own: the owner's reads on from where it is.
  const std::filesystem::path folder(fmt::format("/proc/self/fd/{}", descriptor));
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    const auto name = entry.path().filename().string();
    if (const auto found = look_at(descriptor, name.c_str())) names[name] = identity_of(*found);
  }
  return names;
}

/// What the disk is given is what stands there when the sync begins.
void keep(int descriptor) {
  const auto file = look_at(descriptor, "");
  if (!file) return;
  const std::lock_guard lock(mutex);
  if (S_ISDIR(file->stx_mode)) {
    synced_folders()[identity_of(*file)] = names_in(descriptor);
  } else {
    synced_files()[identity_of(*file)] = content_of(descriptor);
  }
}

/// Of a write that syncs, this part alone.
void keep_part(int descriptor, const iovec* parts, int count, std::size_t size, off_t offset) {
  const auto file = look_at(descriptor, "");
  if (!file) return;
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  bytes.resize(size);
  const auto begin = static_cast<std::size_t>(offset);
  const std::lock_guard lock(mutex);
  auto& content = synced_files()[identity_of(*file)];
  if (content.size() < begin + size) content.resize(begin + size, '\0');
  content.replace(begin, size, bytes);
}

template <class Function>
Function* real(const char* name) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym() has no other type
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int sync_with(int (*sync)(int), int descriptor) {
  if (const int error = failing; error != 0) {
    errno = error;
    return -1;
  }
  keep(descriptor);
  return sync(descriptor);
}

}  // namespace

std::map<std::string, std::string> left_by_power_cut(const std::filesystem::path& folder) {
  std::map<std::string, std::string> left;
  const auto found = look_at(AT_FDCWD, folder.c_str());
  if (!found) return left;
  const std::lock_guard lock(mutex);
  for (const auto& [name, identity] : synced_folders()[identity_of(*found)]) {
    left[name] = synced_files()[identity];
  }
  return left;
}

void fail_syncs(int error) noexcept { failing = error; }

}  // namespace dlock::testkit

extern "C" int fsync(int descriptor) {
  static const auto sync = dlock::testkit::real<int(int)>("fsync");
  return dlock::testkit::sync_with(sync, descriptor);
}

extern "C" int fdatasync(int descriptor) {
  static const auto sync = dlock::testkit::real<int(int)>("fdatasync");
  return dlock::testkit::sync_with(sync, descriptor);
}

extern "C" ssize_t pwritev2(int descriptor, const iovec* parts, int count, off_t offset,
                            int flags) {
  static const auto write =
      dlock::testkit::real<ssize_t(int, const iovec*, int, off_t, int)>("pwritev2");
  const auto put = write(descriptor, parts, count, offset, flags);
  if (put > 0 && (flags & (RWF_DSYNC | RWF_SYNC)) != 0) {
    dlock::testkit::keep_part(descriptor, parts, count, static_cast<std::size_t>(put), offset);
  }
  return put;
}
