// SPDX-License-Identifier: Apache-2.0
//
// Records, notes and raised tokens. Each step runs on the helper thread, under the guard byte of
// the lock's file. It opens the file separately, because a late step must not use the claim's open
// file.
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "backends/local/backend.hpp"
#include "backends/local/lock/notes.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/wire/place.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

// The interval of a claim without a ticket that arrived after the record.
constexpr auto kLookBehindRecord = milliseconds(50);
/// The interval while a process writes the gate.
constexpr auto kGatePause = milliseconds(2);

RecordAnswer answer_of(RecordStatus status, Failure failure = {}) {
  RecordAnswer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

RecordAnswer record_refusal(Failure failure) {
  const bool transient = failure.error == dlock::errc::unavailable;
  return answer_of(transient ? RecordStatus::unavailable : RecordStatus::failed,
                   std::move(failure));
}

std::optional<RecordAnswer> too_long(std::string_view text) {
  if (text.size() <= kLongestRecord) return {};
  return answer_of(RecordStatus::failed, make_failure(Error::text_too_long, ""));
}

/// A read that ended too late has changed nothing.
RecordAnswer as_read(RecordAnswer answer) {
  if (answer.status == RecordStatus::unknown) answer.status = RecordStatus::unavailable;
  return answer;
}

}  // namespace

// The writer of a plan's gate keeps it until it is on disk.
asio::awaitable<RecordAnswer> LocalBackend::under_guard(std::string name, Step step,
                                                        RecordAnswer if_missing,
                                                        TimePoint deadline) {
  auto answer = co_await under_guard_once(name, step, if_missing, deadline);
  while (answer.failure.error == make_error_code(Error::gate_is_written) && env_.now() < deadline &&
         !closed_) {
    co_await sleep_until(env_, std::min(deadline, env_.now() + kGatePause));
    answer = co_await under_guard_once(name, step, if_missing, deadline);
  }
  co_return answer;
}

asio::awaitable<RecordAnswer> LocalBackend::under_guard_once(const std::string& name,
                                                             const Step& step,
                                                             const RecordAnswer& if_missing,
                                                             TimePoint deadline) {
  look_at_path();
  auto failure = co_await open_directory_in_time(deadline);
  if (failure.error) co_return record_refusal(std::move(failure));
  const auto directory = directory_;
  const auto file_name = local::file_name(name);
  const auto path = directory->path_of(file_name);
  const auto file = std::make_shared<LockFile>();
  const auto opened = LockFile::open(directory->get(), file_name.c_str(), *file);
  if (opened.error == ENOENT) co_return if_missing;
  if (!opened.ok()) co_return record_refusal(system_failure(opened.error, path));
  // A process that changes a record keeps the guard until the record is on disk.
  auto guard = co_await take_guard(*file, deadline);
  while (guard.error == EAGAIN && env_.now() < deadline && !closed_) {
    guard = co_await take_guard(*file, deadline);
  }
  if (!guard.ok()) {
    co_return answer_of(RecordStatus::unavailable, system_failure(guard.error, path));
  }
  auto answer = std::make_shared<RecordAnswer>();
  Job job = [answer, directory, file, file_name, where = path, name, step] {
    const Guard held(*file);
    auto stands = Stands::gone;
    const auto asked = file->look_at_name(directory->get(), file_name.c_str(), stands);
    if (!asked.ok() || stands == Stands::gone) {
      *answer = answer_of(RecordStatus::unavailable,
                          system_failure(asked.ok() ? ENOENT : asked.error, where));
      return;
    }
    int error = 0;
    if (where_it_leads(*directory, error) == Leads::elsewhere) {
      *answer = answer_of(RecordStatus::unavailable, system_failure(ENOENT, where));
      return;
    }
    const GuardedFile guarded{*file, where, name, *directory};
    *answer = step(guarded);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    co_return answer_of(RecordStatus::unknown, helper_.why_late(path));
  }
  co_return std::move(*answer);
}

asio::awaitable<RecordAnswer> LocalBackend::record(std::string name, TimePoint deadline) {
  Step step = [](const GuardedFile& guarded) { return read_record(guarded); };
  auto none = answer_of(RecordStatus::done);
  auto read = co_await under_guard(std::move(name), std::move(step), std::move(none), deadline);
  co_return as_read(std::move(read));
}

asio::awaitable<RecordAnswer> LocalBackend::seal(ClaimPtr held, std::string record,
                                                 TimePoint deadline) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(held));
  if (auto refused = too_long(record)) co_return std::move(*refused);
  const bool standing = ours->state == LocalClaim::State::granted && !ours->gone;
  // Without a place the ticket is 0, which no claim has: the answer names the existing record.
  Step step = [ticket = standing ? ours->ticket : 0, record = std::move(record),
               gate = ours->request().gate](const GuardedFile& guarded) {
    return write_seal(guarded, ticket, record, gate.get());
  };
  auto name = ours->request().name;
  auto none = answer_of(RecordStatus::conflict);
  auto answer = co_await under_guard(std::move(name), std::move(step), std::move(none), deadline);
  if (answer.status == RecordStatus::done) drop(*ours);  // which wakes the waiters
  co_return answer;
}

asio::awaitable<RecordAnswer> LocalBackend::set_record_under(GatePtr gate, std::string name,
                                                             std::string from,
                                                             std::optional<std::string> to,
                                                             std::uint64_t min_token,
                                                             TimePoint deadline) {
  if (auto refused = too_long(to.value_or(""))) co_return std::move(*refused);
  Step step = [gate, from = std::move(from), to = to.value_or(""),
               min_token](const GuardedFile& guarded) {
    return replace_record(guarded, from, to, min_token, gate.get());
  };
  auto none = answer_of(RecordStatus::conflict);
  co_return co_await under_guard(std::move(name), std::move(step), std::move(none), deadline);
}

asio::awaitable<RecordAnswer> LocalBackend::raise(ClaimPtr held, std::uint64_t min_token,
                                                  TimePoint deadline) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(held));
  const bool standing = ours->state == LocalClaim::State::granted && !ours->gone;
  Step step = [ticket = standing ? ours->ticket : 0, min_token](const GuardedFile& guarded) {
    return raise_tickets(guarded, ticket, min_token);
  };
  auto name = ours->request().name;
  auto none = answer_of(RecordStatus::conflict);
  co_return co_await under_guard(std::move(name), std::move(step), std::move(none), deadline);
}

asio::awaitable<RecordAnswer> LocalBackend::with_notes(NoteStep step, TimePoint deadline) {
  look_at_path();
  auto failure = co_await open_directory_in_time(deadline);
  if (failure.error) co_return record_refusal(std::move(failure));
  auto answer = std::make_shared<RecordAnswer>();
  Job job = [answer, directory = directory_, step = std::move(step)] {
    *answer = step(*directory);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    co_return answer_of(RecordStatus::unknown, helper_.why_late(path_));
  }
  co_return std::move(*answer);
}

asio::awaitable<RecordAnswer> LocalBackend::note(std::string key, TimePoint deadline) {
  NoteStep step = [key = std::move(key)](const Directory& directory) {
    return read_note(directory, key);
  };
  auto read = co_await with_notes(std::move(step), deadline);
  co_return as_read(std::move(read));
}

asio::awaitable<RecordAnswer> LocalBackend::set_note(std::string key,
                                                     std::optional<std::string> from,
                                                     std::optional<std::string> to,
                                                     TimePoint deadline) {
  if (auto refused = too_long(to.value_or(""))) co_return std::move(*refused);
  look_at_path();
  auto failure = co_await open_directory_in_time(deadline);
  if (failure.error) co_return record_refusal(std::move(failure));
  const auto writers = std::make_shared<LockFile>();
  auto guard = open_writers(*directory_, *writers);
  // Programs that put records in their places have it shared, each for a moment.
  if (guard.ok()) guard = co_await take_guard(*writers, deadline);
  while (guard.error == EAGAIN && env_.now() < deadline && !closed_) {
    guard = co_await take_guard(*writers, deadline);
  }
  if (!guard.ok()) {
    co_return answer_of(RecordStatus::unavailable, system_failure(guard.error, path_));
  }
  NoteStep step = [key = std::move(key), from = from.value_or(""), to = to.value_or(""),
                   unique = make_uuid(env_), writers](const Directory& directory) {
    const Guard held(*writers);
    return write_note(directory, key, from, to, unique);
  };
  co_return co_await with_notes(std::move(step), deadline);
}

// The clock that stamps files: the kernel's, or the file server's.
asio::awaitable<Result<std::chrono::milliseconds>> LocalBackend::time(TimePoint deadline) {
  NoteStep step = [](const Directory& directory) {
    struct stat stamped {};
    const auto ok =
        ::futimens(directory.get(), nullptr) == 0 && ::fstat(directory.get(), &stamped) == 0;
    if (!ok) return record_refusal(system_failure(errno, directory.path));
    auto answer = answer_of(RecordStatus::done);
    const auto at = std::chrono::seconds(stamped.st_mtim.tv_sec) +
                    std::chrono::nanoseconds(stamped.st_mtim.tv_nsec);
    answer.found = std::to_string(std::chrono::floor<milliseconds>(at).count());
    return answer;
  };
  auto asked = co_await with_notes(std::move(step), deadline);
  Result<milliseconds> result;
  if (asked.found) {
    result.value = milliseconds(std::stoll(*asked.found));
  } else {
    result.failure = std::move(asked.failure);
  }
  co_return result;
}

// Other claims may be between this one and the record, and may not have read it yet.
bool LocalBackend::finds_record(LocalClaim& claim) const {
  if (!directory_) return false;
  LockContents contents;
  const auto failure =
      read_contents_unguarded(claim.file, directory_->path_of(claim.file_name), contents);
  claim.maybe_sealed = !failure.error && contents.move.sealed();
  return claim.maybe_sealed;
}

// A process that changes the record closes the file.
asio::awaitable<void> LocalBackend::wait_behind_record(LocalClaimPtr claim, TimePoint deadline) {
  const bool queued = claim->state == LocalClaim::State::waiting;
  bool look_now = false;
  if (queued && claim->queue->is_looker(claim->ticket)) look_now = start_watching(claim);
  const auto pause = queued ? kLookAnyway : kLookBehindRecord;
  if (!look_now) co_await claim->signal.wait_until(std::min(deadline, env_.now() + pause));
  claim->interrupted = false;
}

}  // namespace dlock::local
