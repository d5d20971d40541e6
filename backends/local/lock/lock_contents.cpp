// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/lock_contents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/local/lock/gate.hpp"

namespace dlock::local {
namespace {

/// Without the guard: a write that is met so often half done is none.
constexpr int kMostReads = 16;

RecordAnswer done(std::optional<std::string> found = {}) {
  RecordAnswer answer;
  answer.status = RecordStatus::done;
  answer.found = std::move(found);
  return answer;
}

RecordAnswer conflict(const LockContents& contents) {
  RecordAnswer answer;
  answer.status = RecordStatus::conflict;
  if (contents.move.sealed()) answer.found = contents.record;
  return answer;
}

/// Before anything counts of what was written.
RecordAnswer not_done(Failure failure) {
  RecordAnswer answer;
  const bool transient = failure.error == make_error_code(Error::system) ||
                         failure.error == make_error_code(Error::removed);
  answer.status = transient ? RecordStatus::unavailable : RecordStatus::failed;
  answer.failure = std::move(failure);
  return answer;
}

RecordAnswer maybe_done(Failure failure) {
  RecordAnswer answer;
  answer.status = RecordStatus::unknown;
  answer.failure = std::move(failure);
  return answer;
}

Failure read_own_contents(const GuardedFile& guarded, LockContents& contents) {
  auto failure = read_contents(guarded.file, guarded.path, contents);
  if (failure.error || contents.front.name == guarded.name) return failure;
  return make_failure(Error::foreign_file, fmt::format("{}: the file is that of the lock '{}'",
                                                       guarded.path, contents.front.name));
}

SystemResult write_header(const GuardedFile& guarded, const LockContents& contents,
                          const Ledger& ledger, Version version) {
  std::array<unsigned char, kHeaderSize> bytes{};
  encode_header(ledger, contents.front.name.size(), version, bytes);
  return guarded.file.write_through(bytes, 0);
}

/// Writes the next state: earlier writes have no effect without the last one.
RecordAnswer turn_page(const GuardedFile& guarded, const LockContents& contents, Move next,
                       std::string_view text) {
  next.text_size = static_cast<std::uint32_t>(text.size());
  if (!text.empty()) {
    next.place = 1 - contents.move.place;
    next.text_crc = checksum(bytes_of(text));
    const auto put = guarded.file.write_through(bytes_of(text), text_offset(next.place));
    if (!put.ok()) return not_done(system_failure(put.error, guarded.path));
  }
  std::array<unsigned char, kMoveSize> bytes{};
  encode_move(next, bytes);
  const bool first = contents.front.version == Version::plain;
  auto put = guarded.file.write_through(bytes, kMoveOffset);
  if (first && !put.ok()) return not_done(system_failure(put.error, guarded.path));
  if (first) put = write_header(guarded, contents, contents.front.ledger, Version::moved);
  if (!put.ok()) return maybe_done(system_failure(put.error, guarded.path));
  return done();
}

/// Empty: the ticket's byte is locked, so its claim still is what it was.
std::optional<RecordAnswer> refusal_of(const GuardedFile& guarded, const LockContents& contents,
                                       std::uint64_t ticket) {
  std::optional<std::uint64_t> holder;
  const auto byte = kTicketBase + ticket;
  if (const auto asked = guarded.file.find_locked(byte, byte + 1, holder); !asked.ok()) {
    return not_done(system_failure(asked.error, guarded.path));
  }
  if (contents.move.sealed() || ticket == 0 || !holder) return conflict(contents);
  return {};
}

/// The ledger first: another process that has the file open must not issue a ticket that is too
/// low.
std::optional<RecordAnswer> raise_ledger(const GuardedFile& guarded, LockContents& contents,
                                         std::uint64_t min_token) {
  const auto raised = raised_above(contents.front.ledger, guarded.directory.boot, min_token);
  if (!raised) return not_done(make_failure(Error::tokens_used_up, guarded.path));
  const auto put = write_header(guarded, contents, *raised, contents.front.version);
  if (!put.ok()) return not_done(system_failure(put.error, guarded.path));
  contents.front.ledger = *raised;
  return {};
}

}  // namespace

Failure read_front(const LockFile& file, const std::string& path, Bytes bytes, Front& front) {
  std::size_t size = 0;
  if (const auto read = file.read(bytes, 0, size); !read.ok()) {
    return system_failure(read.error, path);
  }
  front = parse_front(bytes.first(size));
  return front_failure(front, path);
}

Failure read_move(const LockFile& file, const std::string& path, Move& move, std::string& record) {
  std::array<unsigned char, kMoveSize> bytes{};
  std::size_t size = 0;
  auto read = file.read(bytes, kMoveOffset, size);
  if (!read.ok()) return system_failure(read.error, path);
  const auto parsed = parse_move(Bytes(bytes).first(size));
  if (!parsed) {
    return make_failure(Error::damaged_file, path + ": the place of a migration's record");
  }
  move = *parsed;
  record.assign(move.text_size, '\0');
  if (!move.sealed()) return {};
  const Bytes text = bytes_of(record);
  read = file.read(text, text_offset(move.place), size);
  if (!read.ok()) return system_failure(read.error, path);
  if (size == record.size() && checksum(text) == move.text_crc) return {};
  return make_failure(Error::damaged_file, path + ": a migration's record");
}

Failure read_contents(const LockFile& file, const std::string& path, LockContents& contents) {
  contents.move = {};
  contents.record.clear();
  auto failure = read_front(file, path, contents.bytes, contents.front);
  if (failure.error || contents.front.version == Version::plain) return failure;
  return read_move(file, path, contents.move, contents.record);
}

Failure read_contents_unguarded(const LockFile& file, const std::string& path,
                                LockContents& contents) {
  Failure failure;
  for (int i = 0; i < kMostReads; ++i) {
    failure = read_contents(file, path, contents);
    if (failure.error != make_error_code(Error::damaged_file)) break;
  }
  return failure;
}

RecordAnswer read_record(const GuardedFile& guarded) {
  LockContents contents;
  if (auto failure = read_own_contents(guarded, contents); failure.error)
    return not_done(std::move(failure));
  if (!contents.move.sealed()) return done();
  return done(std::move(contents.record));
}

RecordAnswer write_seal(const GuardedFile& guarded, std::uint64_t ticket, std::string_view record,
                        const GateCheck* gate) {
  LockContents contents;
  if (auto failure = read_own_contents(guarded, contents); failure.error)
    return not_done(std::move(failure));
  if (auto refused = refusal_of(guarded, contents, ticket)) return std::move(*refused);
  const HeldGate held(guarded.directory, gate);
  if (held.refusal()) return *held.refusal();
  return turn_page(guarded, contents, contents.move, record);
}

RecordAnswer replace_record(const GuardedFile& guarded, std::string_view from, std::string_view to,
                            std::uint64_t min_token, const GateCheck* gate) {
  LockContents contents;
  if (auto failure = read_own_contents(guarded, contents); failure.error)
    return not_done(std::move(failure));
  if (!contents.move.sealed() || contents.record != from) return conflict(contents);
  const HeldGate held(guarded.directory, gate);
  if (held.refusal()) return *held.refusal();
  auto next = contents.move;
  if (to.empty()) {
    if (auto failed = raise_ledger(guarded, contents, min_token)) return std::move(*failed);
    next.floor = std::max(next.floor, min_token);
  }
  return turn_page(guarded, contents, next, to);
}

RecordAnswer raise_tickets(const GuardedFile& guarded, std::uint64_t ticket,
                           std::uint64_t min_token) {
  LockContents contents;
  if (auto failure = read_own_contents(guarded, contents); failure.error)
    return not_done(std::move(failure));
  if (auto refused = refusal_of(guarded, contents, ticket)) return std::move(*refused);
  if (auto failed = raise_ledger(guarded, contents, min_token)) return std::move(*failed);
  // The waiters already have a ticket.
  auto next = contents.move;
  if (min_token <= next.floor) return done();
  next.floor = min_token;
  return turn_page(guarded, contents, next, {});
}

}  // namespace dlock::local
