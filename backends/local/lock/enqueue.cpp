// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/enqueue.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "backends/local/lock/gate.hpp"
#include "backends/local/lock/lock_contents.hpp"
#include "backends/local/wire/place.hpp"

namespace dlock::local {
namespace {

// The part of the file that a grant reads and writes.
using Buffer = std::array<unsigned char, kFrontSize + kRecordSize>;

Failure gone_backwards(const std::string& path, std::uint64_t seen, std::uint64_t last) {
  return make_failure(
      Error::damaged_file,
      fmt::format("{}: the ticket counter decreased: ticket {} was issued, the file has {}", path,
                  seen, last));
}

// The live tickets in the kernel, and the tokens that this process has seen, must agree with the
// counter. Otherwise an older copy of the file has replaced it, and its tokens would be issued
// again.
Failure check_counter(const LockFile& file, const std::string& path, const Ledger& ledger,
                      const EntryRequest& request, bool others) {
  if (ledger.last < request.known_token) {
    return gone_backwards(path, request.known_token, ledger.last);
  }
  if (!others) return {};
  std::optional<std::uint64_t> above;
  const auto first =
      ledger.boot == request.directory.boot ? kTicketBase + ledger.last + 1 : kTicketBase;
  if (const auto found = file.find_locked(first, kEveryTicket, above); !found.ok()) {
    return system_failure(found.error, path);
  }
  return above ? gone_backwards(path, *above - kTicketBase, ledger.last) : Failure{};
}

Entry failed(Failure failure) {
  Entry entry;
  entry.failure = std::move(failure);
  return entry;
}

/// Releases the guard.
Entry draw(LockFile& file, const EntryRequest& request, const std::string& path) {
  const Guard guard(file);
  Buffer buffer;
  Front front;
  if (auto failure = read_front(file, path, Bytes(buffer).first(kFrontSize), front); failure.error)
    return failed(failure);
  if (front.name != request.claim.name) {
    return failed(
        make_failure(Error::foreign_file,
                     fmt::format("{}: the file is that of the lock '{}'", path, front.name)));
  }
  if (front.version == Version::moved) {
    Entry entry;
    Move move;
    auto failure = read_move(file, path, move, entry.record);
    if (failure.error) return failed(std::move(failure));
    entry.what = Entry::What::sealed;
    if (move.sealed()) return entry;
  }
  std::optional<std::uint64_t> somebody;
  if (const auto found = file.find_locked(kTicketBase, kEveryTicket, somebody); !found.ok()) {
    return failed(system_failure(found.error, path));
  }
  auto wrong = check_counter(file, path, front.ledger, request, somebody.has_value());
  if (wrong.error) return failed(std::move(wrong));
  Entry entry;
  const bool shared = request.claim.mode == Mode::shared;
  // The claim to wait for; a reader waits for writers only.
  auto obstacle = somebody;
  if (shared && somebody) {
    const auto found = file.find_exclusive(kTicketBase, kEveryTicket, obstacle);
    if (!found.ok()) return failed(system_failure(found.error, path));
  }
  entry.is_beside = somebody && !obstacle;
  if (obstacle && !request.claim.queue) {
    entry.what = Entry::What::busy;
    return entry;
  }

  const auto next = next_ticket(front.ledger, request.directory.boot, request.claim.min_token);
  if (next.what == NextTicket::Action::refuse) {
    return failed(make_failure(Error::tokens_used_up, path));
  }
  const bool issue = next.what == NextTicket::Action::issue;
  if (issue) {
    const auto byte = kTicketBase + next.ticket;
    const auto locked = shared ? file.try_lock_shared(byte) : file.try_lock(byte);
    if (!locked.ok()) {
      return failed(locked.error == EAGAIN ? gone_backwards(path, next.ticket, front.ledger.last)
                                           : system_failure(locked.error, path));
    }
  }
  encode_header(next.ledger, request.claim.name.size(), front.version,
                Bytes(buffer).first(kHeaderSize));
  auto written = ConstBytes(buffer).first(kHeaderSize);
  if (issue && !somebody) {
    encode_record(next.ticket, request.now_ms, request.claim.owner,
                  Bytes(buffer).subspan(kHolderOffset));
    written = ConstBytes(buffer);
  }
  if (const auto put = file.write(written, 0); !put.ok()) {
    if (issue) file.unlock(kTicketBase + next.ticket);
    return failed(system_failure(put.error, path));
  }
  entry.what = !issue ? Entry::What::raise : obstacle ? Entry::What::waiting : Entry::What::granted;
  entry.ticket = next.ticket;
  if (!issue || next.raise_soon) entry.raised = next.ledger.raised;
  return entry;
}

/// As for the file: new claims may be in another directory. False: `entry` has the reason.
bool still_leads_there(const Directory& directory, Entry& entry) {
  int error = 0;
  const auto leads = where_it_leads(directory, error);
  if (leads == Leads::here) return true;
  if (leads == Leads::unknown) entry = failed(system_failure(error, directory.path));
  if (leads == Leads::elsewhere) entry.what = Entry::What::moved;
  return false;
}

/// Another process may have removed the file since it was opened, and others may use a new one, or
/// another directory. One check along the whole path shows whether they find this file. If it finds
/// another one, two checks show the reason. False: `entry` has the reason.
bool is_where_others_come(const LockFile& file, const EntryRequest& request,
                          const std::string& path, Entry& entry) {
  Stands stands{};
  const auto& directory = request.directory;
  if (file.look_at_name(AT_FDCWD, path.c_str(), stands).ok() && stands == Stands::here) return true;
  const auto asked = file.look_at_name(directory.get(), request.file_name.c_str(), stands);
  if (!asked.ok()) entry = failed(system_failure(asked.error, path));
  if (!asked.ok()) return false;
  if (stands == Stands::here) return still_leads_there(directory, entry);
  entry.what = Entry::What::replaced;
  return false;
}

/// The ticket is locked before the gate is read: gate.hpp. False: `entry` has the gate's text.
bool is_under_gate(const EntryRequest& request, Entry& entry) {
  const auto& gate = request.claim.gate;
  if (!gate) return true;
  // A hard link of the file may be in another directory, with another gate.
  if (!still_leads_there(request.directory, entry)) return false;
  Failure failure;
  auto other = other_gate(request.directory, *gate, failure);
  if (!other && !failure.error) return true;
  entry = failed(std::move(failure));
  if (!other) return false;
  entry.what = Entry::What::turned;
  entry.record = std::move(*other);
  return false;
}

}  // namespace

Entry enter(LockFile& file, const EntryRequest& request) {
  const auto path = request.directory.path_of(request.file_name);
  auto entry = draw(file, request, path);
  const auto ticket = entry.ticket;
  const bool drawn = entry.what == Entry::What::granted || entry.what == Entry::What::waiting;
  const bool gated = drawn || entry.what == Entry::What::busy;
  const bool counts =
      is_where_others_come(file, request, path, entry) && (!gated || is_under_gate(request, entry));
  if (drawn && !counts) file.unlock(kTicketBase + ticket);
  const bool beside = entry.what == Entry::What::granted && entry.is_beside;
  if (counts && (entry.what == Entry::What::waiting || beside)) {
    std::array<unsigned char, kRecordSize> bytes;
    encode_record(ticket, request.now_ms, request.claim.owner, bytes);
    // For people only: a full disk does not stop a waiter.
    static_cast<void>(file.write(bytes, queue_offset(ticket)));
  }
  return entry;
}

Failure confirm_limit(LockFile& file, const Directory& directory, const std::string& file_name,
                      std::uint64_t raised) {
  const Guard guard(file);
  const auto path = directory.path_of(file_name);
  Buffer buffer;
  Front front;
  if (auto failure = read_front(file, path, Bytes(buffer).first(kFrontSize), front); failure.error)
    return failure;
  const auto confirmed = confirm(front.ledger, raised);
  if (confirmed == front.ledger) return {};
  encode_header(confirmed, front.name.size(), front.version, Bytes(buffer).first(kHeaderSize));
  const auto put = file.write(ConstBytes(buffer).first(kHeaderSize), 0);
  return put.ok() ? Failure{} : system_failure(put.error, path);
}

void write_holder(LockFile& file, std::uint64_t ticket, const ClaimRequest& claim,
                  std::int64_t now_ms) {
  std::array<unsigned char, kRecordSize> bytes;
  encode_record(ticket, now_ms, claim.owner, bytes);
  // Several readers can hold the lock: each keeps the place that it had as a waiter.
  const auto place = claim.mode == Mode::shared ? queue_offset(ticket) : kHolderOffset;
  static_cast<void>(file.write(bytes, place));
}

ClaimAnswer refusal(Failure failure) {
  ClaimAnswer answer;
  const bool transient = failure.error == make_error_code(Error::system) ||
                         failure.error == make_error_code(Error::removed) ||
                         failure.error == make_error_code(Error::too_slow) ||
                         failure.error == make_error_code(Error::too_new) ||
                         failure.error == make_error_code(Error::no_thread);
  answer.status = transient ? ClaimStatus::unavailable : ClaimStatus::failed;
  answer.failure = std::move(failure);
  return answer;
}

}  // namespace dlock::local
