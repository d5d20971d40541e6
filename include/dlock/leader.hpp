// SPDX-License-Identifier: Apache-2.0
//
// Leader: of all processes that stand under one name, one leads, and does the work while it leads.
// It is a lock with a procedure around it: who leads is who holds the lock of that name, so that
// `dlock status` shows it, and `dlock run --leader` stands against it.
//
//   dlock::Leader leader(locks, "billing/leader", [&](std::stop_token stop) {
//     while (!stop.stop_requested()) send_invoices(leader.token());
//   });
//   leader.campaign();   // returns at once
//   ...
//   leader.resign();     // the work stops, then somebody else may lead
//
// Beware: the lead can be lost at any moment, by a pause of this process for one. Work that must
// not be done by two needs the fencing token (docs/fencing.md), as with every lock.
//
// Threads: each Leader that stands has one, which waits for the lead and then runs the work; all of
// a process share one for their deadlines, and one for their observers, if there are any.
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
  /// How long after its last renewal that succeeded a leader gives up, and stops its work: what is
  /// left of the lease is the time that the work has to stop. Default: two thirds of the lease.
  /// Needs `lease`. Nine tenths of what the store really gives, if that is less. Without meaning on
  /// a store without leases.
  std::optional<std::chrono::milliseconds> renew_deadline = std::nullopt;
  /// The pause before standing again: after a lead that was lost, work that threw, a store that was
  /// out of reach. Up to a half more by chance, so that not all come at once. Default: 2 s, or an
  /// eighth of the lease if that is less.
  std::optional<std::chrono::milliseconds> retry = std::nullopt;
};

/// What is unsafe about them, and what to write instead; empty: nothing.
std::string refused(const LeaderTimes& times);

struct LeaderEvent {
  enum class Kind {
    elected,      ///< leads from now on, with `token`; told before the work begins
    resigned,     ///< the work has returned, or was told to stop, and the lock was given back
    lost,         ///< the lead was lost, for `reason`; the work has ended
    work_failed,  ///< the work threw (`text`); the lock was given back
    retrying,     ///< could not stand just now (`error`); stands again after `retry`
    gave_up,      ///< does not stand any more, since trying again would not help (`error`)
  };
  Kind kind = Kind::elected;
  std::optional<std::uint64_t> token;
  LossReason reason =
      LossReason::none;  ///< of `lost`; `none`: gave up by itself, at renew_deadline
  error_code error;
  std::string text;
};

const char* to_string(LeaderEvent::Kind value) noexcept;

struct LeaderOptions {
  LeaderTimes times = {};
  /// False: when the work returns, it has resigned (Curator's LeaderSelector). True: it stands
  /// again, behind those who wait. Lost leads and work that throws are followed by another try in
  /// either case.
  bool stand_again = false;
  /// How often observers look who leads, beside what the store tells; see
  /// Leader::on_leader_changed().
  std::chrono::milliseconds observe_every{1000};
  /// Told of each step, on the leader's thread, between its tries and its work, never beside them:
  /// what must happen at once when the lead is lost goes to the work's stop token. Must not throw;
  /// may call resign(). Default: nobody.
  std::function<void(const LeaderEvent&)> on_event = {};
};

/// Thread safety: all members may be called from any thread at the same time.
class Leader {
 public:
  /// Called on the leader's own thread when this process leads. `stop` is requested when the work
  /// must end: resign(), the campaign's token, the manager is closed, the lock is lost, or the
  /// renew_deadline has passed; in the last case the lock is still ours, for what is left of the
  /// lease. When it returns or throws, the lock is given back.
  using Work = std::function<void(std::stop_token stop)>;
  /// Who leads, as the store shows it; empty: nobody.
  using Observer = std::function<void(const std::optional<Owner>& leader)>;

  /// No I/O. Without `on_elected` it leads until it is told to resign: ask is_leader().
  /// `locks` may be moved or closed meanwhile; a manager that is closed ends the campaign.
  /// Throws LockError{invalid_argument} for times that are unsafe, and as LockManager::lock().
  Leader(LockManager& locks, std::string name, Work on_elected, LeaderOptions options = {});
  /// As resign(). In a fork()ed child: touches nothing of the parent's. In exit(), see there.
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  const std::string& name() const noexcept;

  /// Stands from now on, until resign(), a requested `stop`, the end of its work, or an error that
  /// does not pass. Returns at once. Nothing if it stands already.
  /// A process that ends by exit() while it stands stops its work first, waits for it while the
  /// lock is renewed, 5 s at most, and gives the lock back; work that goes on keeps the lock until
  /// its lease is over. So does a process that is killed.
  /// Throws LockError{unavailable} if there is no thread, {closed} in a fork()ed child of a process
  /// that stood.
  void campaign(std::stop_token stop = {});

  /// Ends the campaign. If it leads: the work's stop is requested, it is waited for, however long
  /// that takes, while the lock is renewed, then the lock is given back. Nobody else leads before
  /// the work has returned, unless the lock is lost meanwhile. Inside the work, or a callback of
  /// this leader, it only requests that. campaign() may follow.
  void resign() noexcept;

  /// Waits for the end of the campaign; why it ended if it gave up. Clear if it does not stand.
  error_code wait() noexcept;

  /// True: this process leads at this moment. Compares the clock with the renew_deadline: false
  /// from then on, and of two processes never true in both. False while the work stops after that.
  bool is_leader() const noexcept;
  /// The fencing token of the lead; empty while it does not lead, and where the store has none.
  std::optional<std::uint64_t> token() const noexcept;

  /// Who leads, here or elsewhere. Asks the store: throws as LockManager::status().
  std::optional<Owner> who() const;
  /// From now on, until the Leader ends: called with who leads, soon after this call, and after
  /// each change, in order and once. The store tells when to look: ZooKeeper, local directories and
  /// memory see each change; Redis passes on the word of a Leader that begins or ends, so that the
  /// end of one that dies is seen by asking; Memcached tells nothing, nor does a route with
  /// `migrate`. In any case the store is asked every `observe_every`; one that is out of reach is
  /// asked again. A lead shorter than a look may not be seen. Needs no campaign. On the process's
  /// one thread for observers: must not block for long, nor throw. Throws LockError{unavailable} if
  /// there is none.
  void on_leader_changed(Observer observer);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace dlock::inline v0
