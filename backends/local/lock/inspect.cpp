// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/inspect.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "backends/local/rules/names.hpp"
#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {
namespace {

// The kernel returns one lock in a range, not all and not the first: ask again on both sides of it.
// The second value is whether the ticket is a reader's.
using Tickets = std::vector<std::pair<std::uint64_t, bool>>;
Tickets locked_tickets(const LockFile& file) {
  Tickets tickets;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{{kTicketBase, kEveryTicket}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    std::optional<std::uint64_t> found;
    bool shared = false;
    if (!file.find_locked(begin, end, found, shared).ok() || !found) continue;
    tickets.emplace_back(*found - kTicketBase, shared);
    ranges.emplace_back(begin, *found);
    ranges.emplace_back(*found + 1, end);
  }
  std::sort(tickets.begin(), tickets.end());
  return tickets;
}

/// The records of one file.
class Records {
 public:
  explicit Records(const LockFile& file) : bytes_(kFileSize) {
    std::size_t size = 0;
    if (!file.read(bytes_, 0, size).ok()) size = 0;
    bytes_.resize(size);
  }

  Front front() const {
    return parse_front(ConstBytes(bytes_).first(std::min(bytes_.size(), kFrontSize)));
  }

  /// Whether a record is missing that has not been overwritten since: it is being written.
  bool lacks_new_one(const Tickets& tickets) const {
    const auto last = front().ledger.last;
    return std::any_of(tickets.begin(), tickets.end(), [&](const auto& ticket) {
      return ticket.first + kQueueRecords > last && !of(ticket.first);
    });
  }

  /// Returns whether a migration's record is there.
  bool sealed() const {
    if (front().version != Version::moved || bytes_.size() < kMoveOffset + kMoveSize) return false;
    const auto move = parse_move(ConstBytes(bytes_).subspan(kMoveOffset, kMoveSize));
    return move && move->sealed();
  }

  std::optional<Record> of(std::uint64_t ticket) const {
    for (const auto offset : {kHolderOffset, queue_offset(ticket)}) {
      if (bytes_.size() < offset + kRecordSize) continue;
      auto record = parse_record(ConstBytes(bytes_).subspan(offset, kRecordSize));
      if (record && record->ticket == ticket) return record;
    }
    return {};
  }

 private:
  std::vector<unsigned char> bytes_;
};

constexpr int kMostLooks = 30;

/// A file at one moment.
struct Look {
  explicit Look(const LockFile& file) : tickets(locked_tickets(file)), records(file) {}
  Tickets tickets;
  Records records;  ///< read later: a ticket is locked before its record is written
};

/// Reads again if an owner's record is being written, or was just overwritten by the next one. An
/// owner that was stopped before it wrote, or has a full disk, stays without a name. `looks`: the
/// remaining number of reads, a millisecond each, for all files.
Look look_at(const LockFile& file, int& looks) {
  Look look(file);
  while (looks > 0 && look.records.lacks_new_one(look.tickets)) {
    --looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    look = Look(file);
  }
  return look;
}

// A ticket whose record has been overwritten, or is not written yet.
Owner nameless(std::uint64_t ticket) {
  Owner owner;
  owner.id = fmt::format("ticket {}", ticket);
  return owner;
}

LockStatus status_of(const Look& look, std::int64_t now_ms) {
  const auto& records = look.records;
  LockStatus status;
  status.sealed = records.sealed();
  if (status.sealed)
    status.notes.emplace_back("sealed by a migration: no client can acquire it here");
  for (const auto& [ticket, shared] : look.tickets) {
    const auto record = records.of(ticket);
    auto owner = record ? record->owner : nameless(ticket);
    const bool beside = status.mode == Mode::shared && shared && status.waiting.empty();
    if (status.sealed || (status.held && !beside)) {
      status.waiting.push_back(std::move(owner));
      continue;
    }
    SharedHolder holder;
    holder.token = ticket;
    holder.owner = std::move(owner);
    if (record) {
      holder.held_for =
          std::chrono::milliseconds(std::max<std::int64_t>(now_ms - record->since_ms, 0));
    }
    if (shared) status.readers.push_back(holder);
    if (std::exchange(status.held, true)) continue;
    if (shared) status.mode = Mode::shared;
    status.token = holder.token;
    status.owner = std::move(holder.owner);
    status.held_for = holder.held_for;
  }
  return status;
}

/// Most files belong to free locks: one short read shows that.
bool may_be_sealed(const LockFile& file) {
  std::vector<unsigned char> bytes(kFrontSize);
  std::size_t size = 0;
  if (!file.read(bytes, 0, size).ok()) return false;
  return parse_front(ConstBytes(bytes).first(size)).version == Version::moved;
}

}  // namespace

Result<LockStatus> read_status(const Directory& directory, const std::string& lock_name,
                               std::int64_t now_ms) {
  return read_status_of(directory, local::file_name(lock_name), lock_name, now_ms);
}

Result<LockStatus> read_status_of(const Directory& directory, const std::string& file_name,
                                  const std::string& lock_name, std::int64_t now_ms) {
  Result<LockStatus> result;
  LockFile file;
  const auto opened = LockFile::open_to_look(directory.get(), file_name.c_str(), file);
  if (opened.error == ENOENT) {
    result.value.emplace();
    result.value->name = lock_name;
    return result;
  }
  if (!opened.ok()) {
    result.failure = system_failure(opened.error, directory.path_of(file_name));
    return result;
  }
  int looks = kMostLooks;
  const auto look = look_at(file, looks);
  result.failure = front_failure(look.records.front(), directory.path_of(file_name));
  if (result.failure.error) return result;
  result.value = status_of(look, now_ms);
  result.value->name = lock_name;
  return result;
}

Failure list_files(const Directory& directory, std::vector<std::string>& files) {
  // A separate file position: the shared descriptor's position is used by every thread.
  Descriptor own(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseDirectory> stream(own ? ::fdopendir(own.get()) : nullptr);
  if (!stream) return system_failure(errno, directory.path);
  static_cast<void>(own.release());
  while (const dirent* const entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
    files.emplace_back(static_cast<const char*>(entry->d_name));
  }
  return {};
}

void leave_out(Failure& all, Failure one) {
  if (!all.error) {
    all = std::move(one);
  } else if (!all.text.ends_with(", and more")) {
    all.text += ", and more";
  }
}

Result<std::vector<LockStatus>> read_all(const Directory& directory, const std::string& prefix,
                                         std::int64_t now_ms) {
  Result<std::vector<LockStatus>> result;
  std::vector<std::string> files;
  result.failure = list_files(directory, files);
  if (result.failure.error) return result;
  result.value.emplace();
  int looks = kMostLooks;
  for (const auto& file_name : files) {
    if (!is_lock_file_name(file_name)) continue;
    const auto known = local::lock_name(file_name);
    if (known && !has_prefix(*known, prefix)) continue;
    LockFile file;
    std::optional<std::uint64_t> somebody;
    auto read = LockFile::open_to_look(directory.get(), file_name.c_str(), file);
    if (read.error == ENOENT) continue;
    if (read.ok()) read = file.find_locked(kTicketBase, kEveryTicket, somebody);
    if (!read.ok())
      leave_out(result.failure, system_failure(read.error, directory.path_of(file_name)));
    if (!read.ok() || (!somebody && !may_be_sealed(file))) continue;
    const auto look = look_at(file, looks);
    const auto front = look.records.front();
    if (front.error == FrontError::foreign || front.error == FrontError::damaged ||
        front.error == FrontError::newer_format) {
      leave_out(result.failure, front_failure(front, directory.path_of(file_name)));
    }
    if (front.error != FrontError::none || !has_prefix(front.name, prefix)) continue;
    auto status = status_of(look, now_ms);
    status.name = front.name;
    if (status.held || status.sealed) result.value->push_back(std::move(status));
  }
  std::sort(result.value->begin(), result.value->end(),
            [](const LockStatus& a, const LockStatus& b) { return a.name < b.name; });
  return result;
}

}  // namespace dlock::local
