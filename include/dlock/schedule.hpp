// SPDX-License-Identifier: Apache-2.0
//
// Schedule: work that many processes begin at about the same time (cron on many hosts), and that
// one of them does. The lock's store keeps the record of each run, with the store's own clock. So
// the clocks of the processes do not count, and the record outlasts the lock.
//
//   dlock::Schedule nightly(locks, "nightly", {.at_most_for = 10min, .every = 24h});
//   if (auto run = nightly.try_begin()) {
//     export_all(run->stop_token());
//     run->finish(true);
//   }
//
// A run holds and renews the lock of that name while it works: two runs never work at once. If a
// runner dies, another process may run its tick after `at_most_for` (and its lease).
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::inline v0 {

struct ScheduleOptions {
  /// Time after which a run is asked to stop, and after which another may follow one that has died.
  /// Required, 1 ms or more.
  std::chrono::milliseconds at_most_for{0};
  /// Shortest time between the beginnings of two runs, even if the first has ended. For work that
  /// takes less time than the clocks of the processes are apart. Default: no time.
  std::chrono::milliseconds at_least_for{0};
  /// The period. Each tick has one run. A run that starts `early` before a tick or later, up to
  /// `early` before the next one, belongs to that tick. Ticks are multiples of the period since
  /// 1970 in UTC: a change of local time leaves none out. Default: no ticks, at_least_for alone
  /// keeps runs apart.
  std::optional<std::chrono::milliseconds> every = std::nullopt;
  /// Time of each tick after the multiple: 2h30m for daily work at 02:30 UTC. Below `every`.
  std::chrono::milliseconds offset{0};
  /// How early a run may start and still belong to the next tick. A run that starts earlier
  /// belongs to the previous tick. Below `every`. Default: a tenth of `every`, at most 30 s.
  std::optional<std::chrono::milliseconds> early = std::nullopt;
  /// Lease of the lock during the run. Default: the lock's.
  std::optional<std::chrono::milliseconds> lease = std::nullopt;
  /// Runs now, under the lock, whatever has run and without at_least_for. The run is not recorded
  /// and uses no tick. A run in progress, or one that died less than its at_most_for ago, still
  /// refuses it.
  bool again = false;
  /// Repeats a tick whose run failed or overran; at_least_for still applies. Needs `every`.
  bool retry_failed = false;
};

/// Returns what is wrong with the options, and what to write instead. Empty: nothing is wrong.
std::string refused(const ScheduleOptions& options);

/// The record of a run, as its store keeps it. All times since 1970 by the store's clock.
struct RunRecord {
  enum class Outcome {
    running,    ///< or has died
    succeeded,  ///< finish(true)
    failed,     ///< finish(false), or never finished
    overran,    ///< was asked to stop at the end of at_most_for
    lost,       ///< lost its lock, or never began
  };
  Outcome outcome = Outcome::running;
  std::optional<std::int64_t> tick;  ///< how many since 1970; empty without `every`
  std::chrono::milliseconds started{0};
  std::chrono::milliseconds at_most_until{0};   ///< another may follow if it has not ended
  std::chrono::milliseconds at_least_until{0};  ///< another may follow if it has
  std::optional<std::chrono::milliseconds> ended;
  std::optional<int> status;  ///< exit status of a command, with dlock run
  std::optional<std::uint64_t> token;
  std::chrono::milliseconds every{0};  ///< 0: without
  std::chrono::milliseconds offset{0};
  std::chrono::milliseconds early{0};
  Owner owner;
  /// The earliest moment at which a run may follow.
  std::chrono::milliseconds next_possible() const noexcept;
};

const char* to_string(RunRecord::Outcome value) noexcept;

/// Why a run does not begin.
struct RunRefusal {
  enum class Reason {
    none,
    was_run,    ///< this tick has had its run
    running,    ///< a run is in progress, or has died and may be followed at last.at_most_until
    too_early,  ///< at_least_for has not passed
    busy,       ///< a client holds the lock without a run
  };
  Reason reason = Reason::none;
  std::optional<RunRecord> last;
  std::chrono::milliseconds now{0};  ///< by the store's clock
};

const char* to_string(RunRefusal::Reason value) noexcept;

/// A run that has begun. Thread safety: as LockHandle.
class ScheduledRun {
 public:
  ScheduledRun(ScheduledRun&&) noexcept;
  ScheduledRun& operator=(ScheduledRun&&) noexcept;
  /// Calls finish(false) if finish() was not called.
  ~ScheduledRun();

  LockHandle& handle() noexcept;
  /// As it was written when the run began. With ScheduleOptions::again: not written.
  const RunRecord& record() const noexcept;
  /// Requested when the lock is lost, and when at_most_for is over, counted from before the store
  /// was asked: the work must end.
  std::stop_token stop_token() const noexcept;
  /// Returns the rest of at_most_for.
  std::chrono::nanoseconds remaining() const noexcept;

  /// Ends the run: writes its outcome, then releases the lock. `status`: for people. Returns
  /// lock_lost if the lock was lost before; unavailable if the store confirmed neither: then the
  /// run counts as one that has died.
  error_code finish(bool succeeded, std::optional<int> status = std::nullopt) noexcept;

 private:
  friend class Schedule;
  struct Impl;
  explicit ScheduledRun(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Thread safety: all members may be called from any thread at the same time.
class Schedule {
 public:
  /// No I/O. `locks` must not be closed before the last call; a closed one answers `closed`.
  /// Throws LockError{invalid_argument} for options that cannot be, {not_supported} if the route
  /// has `migrate`, and as LockManager::lock().
  Schedule(LockManager& locks, std::string name, ScheduleOptions options);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// Begins the run if it is due, and if no other process runs it. Asks once and does not wait;
  /// only while a client holds the lock without a run, it asks again for 2 s. Returns an empty
  /// optional if the run did not begin; `why` then has the reason. Throws LockError: unavailable,
  /// not_supported (the store keeps no runs: Memcached forgets), protocol (the record is not a
  /// run's), and as DistributedLock::acquire().
  [[nodiscard]] std::optional<ScheduledRun> try_begin(RunRefusal* why = nullptr);
  /// Calls try_begin(), `work`, finish(). An exception of the work is thrown again, after
  /// finish(false). Returns false if it was not run here.
  bool run(const std::function<void(std::stop_token stop)>& work, RunRefusal* why = nullptr);

  /// Returns the last run of a name, by any process; empty: there was none. Throws as try_begin().
  static std::optional<RunRecord> last(LockManager& locks, const std::string& name);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dlock::inline v0
