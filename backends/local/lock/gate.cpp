// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/gate.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>

#include "backends/local/lock/lock_contents.hpp"
#include "backends/local/lock/notes.hpp"
#include "backends/local/rules/names.hpp"

namespace dlock::local {
namespace {

using Visit = std::function<Failure(const LockFile&, const std::string& path)>;

/// Every lock's file; ends with the first failure.
Failure visit_files(const Directory& directory, const Visit& visit) {
  // A separate file position: the shared descriptor's position is used by every thread.
  Descriptor own(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseDirectory> stream(own ? ::fdopendir(own.get()) : nullptr);
  if (!stream) return system_failure(errno, directory.path);
  static_cast<void>(own.release());
  for (;;) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) return errno == 0 ? Failure{} : system_failure(errno, directory.path);
    const std::string file_name = static_cast<const char*>(entry->d_name);
    if (!is_lock_file_name(file_name)) continue;
    LockFile file;
    const auto opened = LockFile::open_to_look(directory.get(), file_name.c_str(), file);
    if (opened.error == ENOENT) continue;
    const auto path = directory.path_of(file_name);
    if (!opened.ok()) return system_failure(opened.error, path);
    auto failure = visit(file, path);
    if (failure.error) return failure;
  }
}

}  // namespace

std::optional<std::string> other_gate(const Directory& directory, const GateCheck& expected,
                                      Failure& failure) {
  auto found = read_note(directory, expected.key);
  failure = std::move(found.failure);
  auto text = std::move(found.found).value_or(std::string());
  if (failure.error || text == expected.text) return {};
  return text;
}

HeldGate::HeldGate(const Directory& directory, const GateCheck* expected) {
  if (expected == nullptr) return;
  auto taken = open_writers(directory, writers_);
  if (taken.ok()) taken = writers_.try_lock_shared(kGuardByte);
  RecordAnswer answer;
  if (taken.ok()) {
    answer.gate = other_gate(directory, *expected, answer.failure);
    if (answer.gate) answer.status = RecordStatus::conflict;
    if (!answer.gate && !answer.failure.error) return;
  } else {
    answer.failure = taken.error == EAGAIN
                         ? make_failure(Error::gate_is_written, std::string(directory.path))
                         : system_failure(taken.error, directory.path);
  }
  refusal_ = std::move(answer);
}

HeldGate::~HeldGate() {
  if (writers_) writers_.unlock(kGuardByte);
}

Result<std::vector<std::string>> read_claimed(const Directory& directory,
                                              const std::string& prefix) {
  Result<std::vector<std::string>> result;
  std::vector<std::string> names;
  const Visit visit = [&](const LockFile& file, const std::string& path) {
    std::optional<std::uint64_t> somebody;
    const auto looked = file.find_locked(kTicketBase, kEveryTicket, somebody);
    if (!looked.ok()) return system_failure(looked.error, path);
    if (!somebody) return Failure{};
    LockContents contents;
    auto failure = read_contents_unguarded(file, path, contents);
    if (failure.error) return failure;
    const std::string name(contents.front.name);
    if (!contents.move.sealed() && has_prefix(name, prefix)) names.push_back(name);
    return Failure{};
  };
  result.failure = visit_files(directory, visit);
  if (result.failure.error) return result;
  std::sort(names.begin(), names.end());
  result.value = std::move(names);
  return result;
}

// Tickets issued since the last sync may be lost with the page cache, but are below the limit.
Result<std::uint64_t> read_highest(const Directory& directory) {
  Result<std::uint64_t> result;
  std::uint64_t highest = 0;
  const Visit visit = [&](const LockFile& file, const std::string& path) {
    LockContents contents;
    auto failure = read_contents_unguarded(file, path, contents);
    if (!failure.error) highest = std::max(highest, contents.front.ledger.limit);
    return failure;
  };
  result.failure = visit_files(directory, visit);
  if (!result.failure.error) result.value = highest;
  return result;
}

}  // namespace dlock::local
