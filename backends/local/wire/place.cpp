// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>

#include "dlock/spi/name.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

// Enough to keep the paths of one machine apart.
constexpr std::size_t kMarkDigits = 32;

void add_way(std::set<std::string>& all, const std::filesystem::path& path) {
  std::filesystem::path so_far;
  for (const auto& part : path) {
    so_far /= part;
    if (so_far != so_far.root_path()) all.insert(so_far.string());
  }
}

std::string mark_name(const std::string& path) {
  return ".at-" + sha256_hex(path).substr(0, kMarkDigits);
}

/// How a mark begins, and no mark of another directory.
std::string identity(const Directory& directory) {
  return fmt::format("dlock-path=1 device={} inode={} since_ms=", directory.device,
                     directory.inode);
}

/// -1: there is none, or another directory's.
std::int64_t read_mark(int directory, const std::string& name, const std::string& ours) {
  const Descriptor file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 128> bytes{};
  const auto size = file ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  const std::string_view found(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!found.starts_with(ours) || !found.ends_with('\n')) return -1;
  std::int64_t since_ms = -1;
  std::from_chars(found.data() + ours.size(), found.data() + found.size(), since_ms);
  return since_ms;
}

}  // namespace

Leads where_it_leads(const Directory& directory, int& error) noexcept {
  struct stat there {};
  error = 0;
  if (::stat(directory.path.c_str(), &there) == 0) {
    const bool same = there.st_dev == directory.device && there.st_ino == directory.inode;
    return same ? Leads::here : Leads::elsewhere;
  }
  error = errno;
  const bool nowhere = error == ENOENT || error == ENOTDIR || error == ELOOP;
  return nowhere ? Leads::elsewhere : Leads::unknown;
}

std::chrono::milliseconds mark_path(const Directory& directory, std::int64_t now_ms) {
  const auto name = mark_name(directory.path);
  const auto ours = identity(directory);
  const auto since_ms = read_mark(directory.get(), name, ours);
  if (since_ms >= 0 && since_ms <= now_ms) {
    return std::clamp(kSettling - milliseconds(now_ms - since_ms), milliseconds(0), kSettling);
  }
  const Descriptor file(::openat(directory.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW,
                                 kFileMode));
  // Fails for a file of another user, which has its mode already.
  if (file && directory.file_mode) {
    static_cast<void>(::fchmod(file.get(), *directory.file_mode) == 0);
  }
  const auto text = fmt::format("{}{}\n", ours, now_ms);
  // The next process writes an incomplete mark again.
  if (file) static_cast<void>(::pwrite(file.get(), text.data(), text.size(), 0) == 0);
  return kSettling;
}

void remove_mark(const Directory& directory) {
  ::unlinkat(directory.get(), mark_name(directory.path).c_str(), 0);
}

std::vector<std::string> way_to(const std::string& path) {
  std::set<std::string> all;
  add_way(all, path);
  std::error_code ec;
  const auto real = std::filesystem::canonical(path, ec);
  if (!ec) add_way(all, real);
  return {all.begin(), all.end()};
}

}  // namespace dlock::local
