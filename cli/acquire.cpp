// SPDX-License-Identifier: Apache-2.0
#include "cli/acquire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "cli/open.hpp"
#include "cli/output/text.hpp"
#include "cli/output/waiting_note.hpp"
#include "cli/process/ancestor_check.hpp"
#include "cli/process/grant_file.hpp"
#include "cli/process/wake.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::ends_a_wait;
using program::Exit;
using program::exit_of;
using program::signal_status;
using program::Signals;

namespace {

/// Who gets the lock at once wants no word about it.
constexpr std::chrono::seconds kSilence{1};

/// Shared with the completion handler, which may run on another thread.
struct Outcome {
  Wake wake;
  Diagnostics diagnostics;
  std::mutex mutex;
  std::optional<std::pair<error_code, LockHandle>> result;
};

std::optional<std::pair<error_code, LockHandle>> take(Outcome& outcome) {
  const std::scoped_lock guard(outcome.mutex);
  return std::exchange(outcome.result, std::nullopt);
}

int refuse_inner(const std::string& name, std::int64_t ancestor) {
  complain(
      fmt::format("{}: a process around this command (pid {}) holds it, so this command would wait "
                  "forever; remove the inner lock, or, within dlock run, keep DLOCK_HELD in the "
                  "environment and write dlock run --nested",
                  name, ancestor));
  return status(Exit::usage);
}

/// 0: no ancestor of this process is known to hold it.
std::int64_t ancestor_that_holds(LockManager& locks, const std::string& name) noexcept {
  constexpr std::chrono::milliseconds kPatience{500};
  try {
    return holding_ancestor(locks.status(name, kPatience));
  } catch (...) {
    return 0;
  }
}

int tell(LockManager& locks, const error_code& error, const Outcome& outcome,
         const Arguments& arguments) {
  if (error == errc::timed_out && !arguments.permits) {
    const auto ancestor = ancestor_that_holds(locks, arguments.name);
    if (ancestor != 0) return refuse_inner(arguments.name, ancestor);
  }
  Diagnostics details = outcome.diagnostics;
  details.lock = arguments.name;
  if (error == errc::timed_out && details.server_text == kHeldByAnother) {
    // The store answers. Perhaps the lock is free by now: then what was so counts.
    auto holder = holder_of(locks, arguments.name);
    if (!holder.empty()) details.server_text = std::move(holder);
  }
  if (error == errc::timed_out && details.server_text == kTooFewPermits) {
    auto ahead = waiter_ahead(locks, arguments.name, arguments.permits.value_or(1));
    if (!ahead.empty()) details.server_text = std::move(ahead);
  }
  complain(explanation(error, details));
  const bool is_conflict = error == errc::timed_out || error == errc::queue_full;
  if (is_conflict && arguments.conflict_exit_code) {
    return *arguments.conflict_exit_code;
  }
  return status(exit_of(error));
}

}  // namespace

Acquired acquire(LockManager& locks, const Arguments& arguments, Signals& signals) {
  const auto lock =
      !arguments.adopt.empty() ? locks.exported(read_grant(arguments.adopt, arguments.name))
      : arguments.permits
          ? locks.semaphore(arguments.name, arguments.limit).permits(*arguments.permits)
          : locks.lock(arguments.name);
  const auto outcome = std::make_shared<Outcome>();
  AcquireOptions options = acquire_options(arguments);
  options.diagnostics = &outcome->diagnostics;
  auto cancel = lock->start_acquire(options, [outcome](error_code error, LockHandle handle) {
    const std::scoped_lock guard(outcome->mutex);
    outcome->result.emplace(error, std::move(handle));
    outcome->wake.notify();
  });

  int ended_by = 0;
  std::int64_t ancestor = 0;
  std::optional<AncestorCheck> check;
  bool may_check = !arguments.permits;
  std::optional<WaitingNote> note;
  bool may_tell = WaitingNote::is_wanted();
  const auto about = arguments.permits ? WaitingNote::About::semaphore : WaitingNote::About::lock;
  const auto tell_at = BoottimeClock::now() + kSilence;
  while (true) {
    const auto silent_for = may_tell || may_check
                                ? std::optional<Duration>(std::max<Duration>(
                                      tell_at - BoottimeClock::now(), Duration::zero()))
                                : std::nullopt;
    wait_for({signals.descriptor(), outcome->wake.descriptor()}, silent_for);
    outcome->wake.clear();
    while (const auto signal = signals.next()) {
      if (!ends_a_wait(signal->number)) continue;
      // Asked again while we clean up: the store will do it when our lease is over.
      if (ended_by != 0) ::_exit(signal_status(signal->number));
      ended_by = signal->number;
      cancel();
    }
    if (check && ancestor == 0 && check->holder() != 0) {
      ancestor = check->holder();
      cancel();
    }
    auto result = take(*outcome);
    if (!result && may_check && BoottimeClock::now() >= tell_at) {
      may_check = false;
      check.emplace(locks, arguments.name, [outcome] { outcome->wake.notify(); });
    }
    if (!result && may_tell && BoottimeClock::now() >= tell_at) {
      may_tell = false;
      note.emplace(locks, arguments.name, about);
    }
    if (!result) continue;
    auto& [error, handle] = *result;
    if (ancestor != 0 && !handle) {
      const int refused = refuse_inner(arguments.name, ancestor);
      locks.close();
      return {LockHandle(), refused};
    }
    if (ended_by != 0) {
      if (handle) handle.release();
      if (note || check) locks.close();  // ends their questions
      return {LockHandle(), signal_status(ended_by)};
    }
    if (error) {
      const int told = tell(locks, error, *outcome, arguments);
      if (note || check) locks.close();
      return {LockHandle(), told};
    }
    return {std::move(handle), 0};
  }
}

}  // namespace dlock::cli
