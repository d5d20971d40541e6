// SPDX-License-Identifier: Apache-2.0
//
// Leader: elects one of all processes that campaign under one name. That process does the work
// while it leads. The election is a lock: the holder of the lock of that name leads. So
// `dlock status` shows the leader, and `dlock run --leader` campaigns against it.
//
//   dlock::Leader leader(locks, "billing/leader", [&](std::stop_token stop) {
//     while (!stop.stop_requested()) send_invoices(leader.token());
//   });
//   leader.campaign();   // returns at once
//   ...
//   leader.resign();     // the work stops, then another process may lead
//
// Beware: the lead can be lost at any moment, by a pause of this process for one. Work that must
// not be done by two needs the fencing token (docs/fencing.md), as with every lock.
//
// Threads: each Leader that campaigns has one, which waits for the lead and then runs the work. All
// Leaders of a process share one thread for their deadlines, and one for their observers, if any.
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

/// Three times, each for another question. With a lease L: L/3 < renew_deadline <= 9/10 L, and
/// 6/5 retry < renew_deadline. A renewal is sent when a third of the renew_deadline has passed, and
/// takes a third of it at most, whatever the store's request_timeout. So a second one fits in.
struct LeaderTimes {
  /// How long a leader that is dead or cut off keeps the others out. Default: the lock's (its
  /// route's or store's `lease`).
  std::optional<std::chrono::milliseconds> lease = std::nullopt;
  /// Time after the last successful renewal at which a leader gives up and stops its work. The rest
  /// of the lease is the time that the work has to stop. Default: two thirds of the lease. Needs
  /// `lease`. At most nine tenths of the lease that the store really grants. Without meaning on a
  /// store without leases.
  std::optional<std::chrono::milliseconds> renew_deadline = std::nullopt;
  /// Pause before the next try: after a lost lead, work that threw, or a store that was out of
  /// reach. A random addition of up to a half keeps the candidates from trying at the same time.
  /// Default: 2 s, or an eighth of the lease if that is less.
  std::optional<std::chrono::milliseconds> retry = std::nullopt;
};

/// Returns why the times are unsafe, and what to write instead. Empty: they are safe.
std::string refused(const LeaderTimes& times);

struct LeaderEvent {
  enum class Kind {
    elected,      ///< leads from now on, with `token`; reported before the work begins
    resigned,     ///< the work has returned or was asked to stop, and the lock was released
    lost,         ///< the lead was lost, for `reason`; the work has ended
    work_failed,  ///< the work threw (`text`); the lock was released
    retrying,     ///< could not campaign just now (`error`); tries again after `retry`
    gave_up,      ///< the campaign has ended, since another try would not help (`error`)
  };
  Kind kind = Kind::elected;
  std::optional<std::uint64_t> token;
  LossReason reason = LossReason::none;  ///< with `lost`; `none`: gave up at renew_deadline
  error_code error;
  std::string text;
};

const char* to_string(LeaderEvent::Kind value) noexcept;

struct LeaderOptions {
  LeaderTimes times = {};
  /// False: the campaign ends when the work returns, as with Curator's LeaderSelector. True: it
  /// campaigns again, behind the waiters. A lost lead, or work that throws, is followed by another
  /// try in either case.
  bool stand_again = false;
  /// Interval at which observers ask the store for the leader, in addition to its notifications.
  /// See Leader::on_leader_changed().
  std::chrono::milliseconds observe_every{1000};
  /// Called for each step on the leader's thread, between its tries and its work, never beside
  /// them. Use the work's stop token for actions that a lost lead needs at once. Must not throw;
  /// may call resign(). Default: none.
  std::function<void(const LeaderEvent&)> on_event = {};
};

/// Thread safety: all members may be called from any thread at the same time.
class Leader {
 public:
  /// Called on the leader's own thread when this process leads. `stop` is requested when the work
  /// must end: resign(), the campaign's token, a closed manager, a lost lock, or a passed
  /// renew_deadline. In the last case this process still holds the lock for the rest of the lease.
  /// The lock is released when the work returns or throws.
  using Work = std::function<void(std::stop_token stop)>;
  /// Receives the leader, as the store shows it; empty: no process leads.
  using Observer = std::function<void(const std::optional<Owner>& leader)>;

  /// Does not contact the store. Without `on_elected` it leads until resign(): poll is_leader().
  /// `locks` may be moved or closed meanwhile; a closed manager ends the campaign. Throws
  /// LockError{invalid_argument} for unsafe times, and as LockManager::lock().
  Leader(LockManager& locks, std::string name, Work on_elected, LeaderOptions options = {});
  /// As resign(). In a fork()ed child: touches nothing of the parent's. During exit(): see
  /// campaign().
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  const std::string& name() const noexcept;

  /// Campaigns until resign(), a requested `stop`, the end of its work, or a permanent error.
  /// Returns at once. Does nothing during a campaign. A process that ends by exit() during a
  /// campaign stops its work first. It waits for the work while the lock is renewed, 5 s at most,
  /// and releases the lock. Work that continues after that keeps the lock until its lease is over,
  /// as a killed process does. Throws LockError{unavailable} if a thread cannot be made, {closed}
  /// in a fork()ed child of a process that campaigned.
  void campaign(std::stop_token stop = {});

  /// Ends the campaign. If this process leads: requests the work's stop, waits for the work without
  /// a time limit while the lock is renewed, and releases the lock. No other process leads before
  /// the work has returned, unless the lock is lost meanwhile. Inside the work, or a callback of
  /// this leader, it only requests the end. campaign() may follow.
  void resign() noexcept;

  /// Blocks until the campaign has ended. Returns the error if it gave up, else a clear code.
  error_code wait() noexcept;

  /// True: this process leads at this moment. Compares the clock with the renew_deadline: false
  /// from then on, and of two processes never true in both. False while the work stops after that.
  bool is_leader() const noexcept;
  /// The fencing token of the lead; empty while it does not lead, and where the store has none.
  std::optional<std::uint64_t> token() const noexcept;

  /// Returns the leader, in this or another process. Asks the store: throws as
  /// LockManager::status().
  std::optional<Owner> who() const;
  /// Calls `observer` with the leader soon after this call, and after each change, in order and
  /// once, until the Leader ends. The store's notifications depend on its kind:
  /// - ZooKeeper, local directories and memory notify of each change;
  /// - Redis passes on the message of a Leader that begins or ends, so that a death is found by
  ///   polling;
  /// - Memcached, and a route with `migrate`, notify of nothing.
  ///
  /// The store is also polled every `observe_every`, even while it is out of reach. A lead that
  /// begins and ends between two reads may not be seen. Needs no campaign. Runs on the process's
  /// one thread for observers: must not block for long, nor throw. Throws LockError{unavailable} if
  /// that thread cannot be made.
  void on_leader_changed(Observer observer);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace dlock::inline v0
