// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/permits_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <thread>

#include "backends/local/error.hpp"
#include "backends/local/lock/inspect.hpp"
#include "backends/local/rules/names.hpp"
#include "dlock/semaphore.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPermitsStamp = "dlock-permits/1 ";
constexpr std::string_view kPermitsStampOfAnyFormat = "dlock-permits/";
constexpr unsigned kPermitsFormat = 1;
constexpr std::size_t kDigits = 10;
constexpr std::size_t kLineSize = kPermitsStamp.size() + kDigits + 1;
constexpr std::size_t kCountSize = 8;
constexpr std::size_t kEntrySize = kCountSize + kRecordSize;
constexpr std::size_t kWaitersAt = 1024;
constexpr std::size_t kSlotsAt = 65'536;
/// Tries while another process writes the limit.
constexpr int kLimitTries = 1000;

std::size_t waiter_offset(std::uint64_t ticket) {
  return kWaitersAt + static_cast<std::size_t>(ticket % kQueueRecords) * kEntrySize;
}

std::size_t slot_offset(std::uint64_t slot) {
  return kSlotsAt + static_cast<std::size_t>(slot) * kEntrySize;
}

// For people: what cannot be written is not shown.
void write_entry(LockFile& file, std::size_t offset, std::uint64_t ticket,
                 const ClaimRequest& request, std::int64_t now_ms) {
  std::array<unsigned char, kEntrySize> bytes{};
  for (std::size_t i = 0; i < kCountSize; ++i) {
    bytes.at(i) = static_cast<unsigned char>(std::uint64_t{request.permits} >> (8 * i));
  }
  encode_record(ticket, now_ms, request.owner, Bytes(bytes).subspan(kCountSize));
  static_cast<void>(file.write(bytes, offset));
}

struct PermitEntry {
  std::uint32_t permits = 1;
  Record record;
};

std::optional<PermitEntry> read_entry(const LockFile& file, std::size_t offset) {
  std::array<unsigned char, kEntrySize> bytes{};
  std::size_t size = 0;
  if (!file.read(bytes, offset, size).ok() || size < kEntrySize) return {};
  auto record = parse_record(ConstBytes(bytes).subspan(kCountSize));
  if (!record) return {};
  PermitEntry entry;
  std::uint64_t permits = 0;
  for (std::size_t i = 0; i < kCountSize; ++i) permits |= std::uint64_t{bytes.at(i)} << (8 * i);
  entry.permits = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(permits, 1, kMostPermits));
  entry.record = std::move(*record);
  return entry;
}

/// A writer of the limit has the guard byte during a write to the disk.
SystemResult wait_for_guard(LockFile& file) {
  SystemResult tried;
  for (int i = 0; i < kLimitTries; ++i) {
    tried = file.try_lock(kGuardByte);
    if (tried.error != EAGAIN) return tried;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return tried;
}

void add_holders(const LockFile& file, std::int64_t now_ms, SemaphoreStatus& status) {
  std::map<std::uint64_t, PermitHolder> holders;  // by their tickets
  for (const auto slot : taken_slots(file)) {
    const auto entry = read_entry(file, slot_offset(slot));
    const auto ticket = entry ? entry->record.ticket : 0;
    auto& holder = holders[ticket];
    if (holder.token) {
      ++holder.permits;
      continue;
    }
    holder.token = ticket;
    holder.permits = 1;
    if (!entry) continue;
    holder.owner = entry->record.owner;
    holder.held_for = milliseconds(std::max<std::int64_t>(now_ms - entry->record.since_ms, 0));
  }
  for (auto& [ticket, holder] : holders) status.holders.push_back(std::move(holder));
}

/// Returns the semaphore of a file with permits. Empty: another kind of file. The file of its line
/// contains a hashed name.
std::optional<std::string> semaphore_of(const Directory& directory, const std::string& file) {
  const auto line = line_file_of_permits(file);
  if (line.empty()) return {};
  if (auto name = semaphore_name(file)) return name;
  LockFile queue;
  if (!LockFile::open_to_look(directory.get(), line.c_str(), queue).ok()) return {};
  std::vector<unsigned char> bytes(kFrontSize);
  std::size_t size = 0;
  if (!queue.read(bytes, 0, size).ok()) return {};
  auto front = parse_front(ConstBytes(bytes).first(size));
  if (front.error != FrontError::none || permits_file_name(front.name) != file) return {};
  return std::string(front.name);
}

void add_waiters(const LockFile& file, const LockStatus& line, SemaphoreStatus& status) {
  std::vector<Owner> owners = line.waiting;
  if (line.held && line.owner) owners.insert(owners.begin(), *line.owner);
  std::map<std::string, std::uint32_t> wanted;
  for (std::uint64_t place = 0; place < kQueueRecords; ++place) {
    const auto entry = read_entry(file, waiter_offset(place));
    if (entry) wanted[entry->record.owner.id] = entry->permits;
  }
  for (auto& owner : owners) {
    const bool has_them =
        std::any_of(status.holders.begin(), status.holders.end(),
                    [&](const PermitHolder& holder) { return holder.owner.id == owner.id; });
    if (has_them) continue;
    PermitHolder waiter;
    const auto known = wanted.find(owner.id);
    if (known != wanted.end()) waiter.permits = known->second;
    waiter.owner = std::move(owner);
    status.waiting.push_back(std::move(waiter));
  }
}

}  // namespace

ClaimPtr make_permits_claim(ClaimRequest request, Env& env) {
  ClaimRequest place;
  place.name = request.name;
  place.owner = request.owner;
  place.queue = request.queue;
  place.min_token = request.min_token;
  auto line = semaphore_file_name(request.name);
  auto permits = permits_file_name(request.name);
  auto claim = std::make_shared<LocalClaim>(std::move(request), env, std::move(permits));
  claim->guard = std::make_shared<LocalClaim>(std::move(place), env, std::move(line));
  return claim;
}

SystemResult open_permits(const Directory& directory, const std::string& file, LockFile& out) {
  return open_or_make(directory, file, out);
}

Failure read_limit(const LockFile& file, const std::string& path,
                   std::optional<std::uint32_t>& limit) {
  limit.reset();
  std::string line(kLineSize, '\0');
  std::size_t size = 0;
  const auto read = file.read(bytes_of(line), 0, size);
  if (!read.ok()) return system_failure(read.error, path);
  if (size == 0 || line.front() == '\0') return {};  // the limit is written before all else
  auto newer = newer_format(path, line, kPermitsStampOfAnyFormat, kPermitsFormat);
  if (!newer.empty()) return make_failure(Error::newer_format, std::move(newer));
  std::uint32_t found = 0;
  const auto* digits = line.data() + kPermitsStamp.size();
  const bool whole = size == kLineSize && line.starts_with(kPermitsStamp) && line.back() == '\n';
  const auto [stop, error] = std::from_chars(digits, digits + kDigits, found);
  if (!whole || error != std::errc() || stop != digits + kDigits || found == 0) {
    return make_failure(Error::foreign_file, path);
  }
  limit = found;
  return {};
}

std::vector<std::uint64_t> taken_slots(const LockFile& file) {
  std::vector<std::uint64_t> slots;
  // The kernel names one lock in a range: ask again to both sides of it.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{
      {kTicketBase, kTicketBase + kMostPermits}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    std::optional<std::uint64_t> found;
    if (!file.find_locked(begin, end, found).ok() || !found) continue;
    const auto at = std::max(*found, begin);  // neighbours of one holder are one lock
    slots.push_back(at - kTicketBase);
    ranges.emplace_back(begin, at);
    ranges.emplace_back(at + 1, end);
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

void write_waiter(LockFile& file, std::uint64_t ticket, const ClaimRequest& request,
                  std::int64_t now_ms) {
  write_entry(file, waiter_offset(ticket), ticket, request, now_ms);
}

void write_slot(LockFile& file, std::uint64_t slot, std::uint64_t ticket,
                const ClaimRequest& request, std::int64_t now_ms) {
  write_entry(file, slot_offset(slot), ticket, request, now_ms);
}

Failure write_limit_through(const Directory& directory, const std::string& file,
                            std::uint32_t limit, bool if_absent) {
  const auto path = directory.path_of(file);
  LockFile permits;
  auto done = open_permits(directory, file, permits);
  if (done.ok()) done = wait_for_guard(permits);
  if (!done.ok()) return system_failure(done.error, path);
  std::optional<std::uint32_t> stands;
  auto failure = read_limit(permits, path, stands);
  if (failure.error || (stands && if_absent)) return failure;
  const auto line = fmt::format("{}{:0{}}\n", kPermitsStamp, limit, kDigits);
  done = permits.write_through(bytes_of(line), 0);
  if (done.ok() && ::fsync(directory.get()) != 0) done = {errno};
  return done.ok() ? Failure{} : system_failure(done.error, path);
}

Result<SemaphoreStatus> read_semaphore(const Directory& directory, const std::string& name,
                                       std::int64_t now_ms) {
  Result<SemaphoreStatus> result;
  result.value.emplace();
  result.value->name = name;
  const auto file = permits_file_name(name);
  LockFile permits;
  const auto opened = LockFile::open_to_look(directory.get(), file.c_str(), permits);
  if (opened.error == ENOENT) return result;
  if (!opened.ok()) {
    result.value.reset();
    result.failure = system_failure(opened.error, directory.path_of(file));
    return result;
  }
  auto line = read_status_of(directory, semaphore_file_name(name), name, now_ms);
  result.failure = line.failure;
  if (!result.failure.error) {
    result.failure = read_limit(permits, directory.path_of(file), result.value->limit);
  }
  if (result.failure.error) {
    result.value.reset();
    return result;
  }
  add_holders(permits, now_ms, *result.value);
  add_waiters(permits, *line.value, *result.value);
  return result;
}

Result<std::vector<SemaphoreStatus>> read_semaphores(const Directory& directory,
                                                     const std::string& prefix,
                                                     std::int64_t now_ms) {
  Result<std::vector<SemaphoreStatus>> result;
  std::vector<std::string> files;
  result.failure = list_files(directory, files);
  if (result.failure.error) return result;
  std::vector<SemaphoreStatus> found;
  for (const auto& file : files) {
    const auto name = semaphore_of(directory, file);
    if (!name || !has_prefix(*name, prefix)) continue;
    auto status = read_semaphore(directory, *name, now_ms);
    if (!status.value) leave_out(result.failure, std::move(status.failure));
    if (status.value && status.value->limit) found.push_back(std::move(*status.value));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  result.value = std::move(found);
  return result;
}

}  // namespace dlock::local
