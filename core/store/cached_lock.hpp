// SPDX-License-Identifier: Apache-2.0
//
// CachedLock: a lock whose claim stays with the process from one of its holders to the next, until
// another client asks or the time is over (lock caching: Burrows, The Chubby lock service, OSDI
// 2006, section 2.7; passed on inside a process as by a cohort lock: Dice, Marathe and Shavit, Lock
// cohorting, PPoPP 2012). Deviations: a suspect claim is never reused, and the holders in turn have
// one fencing token.
//
// The claim has its own hold, which is renewed as any other and which no user ever receives. Each
// user has a hold that depends on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "core/store/acquisition.hpp"
#include "core/store/hold.hpp"
#include "core/store/store.hpp"

namespace dlock::core {

class CachedLock final : public BackgroundWork, public std::enable_shared_from_this<CachedLock> {
 public:
  struct Limits {
    Duration cache{};     ///< 0: a claim that no waiter of this process wants is released
    unsigned cohort = 0;  ///< how often in a row it is passed on while another client asks
  };
  explicit CachedLock(Limits limits) : limits_(limits) {}

  /// Returns the lock if its claim is kept here, unused and valid now; else null. Any thread; does
  /// no I/O and uses no state of the loop.
  std::shared_ptr<Hold> take();

  /// Calls `handler` exactly once. Returns the canceller. Loop only.
  std::function<void()> acquire(const std::shared_ptr<Store>& store, Acquisition::Request request,
                                const std::shared_ptr<detail::AcquireHandler>& handler);
  /// Called by its store: ends the waits. Loop only.
  void close() override;

 private:
  struct Waiter;
  class ClaimWatch;
  class KeptClaim;
  using WaiterPtr = std::shared_ptr<Waiter>;
  using Waiters = std::map<std::uint64_t, WaiterPtr>;  ///< in the order of their arrival
  using KeptClaimPtr = std::shared_ptr<KeptClaim>;
  enum class Place { none, used, passing, idle };  ///< state of the claim
  enum class Next { keep, pass, give_away };

  // Any thread.
  void take_back(KeptClaim& from, Hold& hold, Releaser::Done& done);
  void give_up(KeptClaim& from);
  void lead_next_soon(Env& env);
  /// Returns the hold of the present user, if there is one.
  std::shared_ptr<Hold> on_change(const Hold& claimed, HandleState state, LossReason why) noexcept;
  // With the mutex.
  std::shared_ptr<Hold> make_holder();
  bool is_wanted() const noexcept { return is_contended_ || was_waited_for_; }
  Next next() const noexcept;
  KeptClaimPtr end() noexcept;
  void keep_or_pass(Next what);
  // Loop only.
  void on_contended(const Hold& claimed);
  std::shared_ptr<Hold> holder(const Hold& claimed) noexcept;
  void join(const WaiterPtr& waiter);
  WaiterPtr take_out(Waiters::iterator place);
  void leave(std::uint64_t number, errc why);
  /// Ends a wait that is over.
  void time_out(std::uint64_t number);
  /// Returns whether the last answer of the store was that this process or another client holds it.
  bool is_known_held();
  /// Asks the store once, beside the claim that is under way and without keeping the grant.
  void ask_apart(const WaiterPtr& waiter);
  void lead(const WaiterPtr& waiter);
  void on_led(const WaiterPtr& waiter, error_code ec, LockHandle got);
  std::shared_ptr<Hold> adopt(LockHandle& got, bool has_waited);
  void lead_next();
  void pass_on();
  void arm(Env& env, TimePoint when);
  void on_timer(Env& env);

  const Limits limits_;
  std::atomic<bool> is_idle_ = false;
  std::atomic<unsigned> generation_ = 0;  ///< fork generation of the process that keeps the claim

  std::mutex mutex_;
  Place place_ = Place::none;
  KeptClaimPtr kept_;           ///< while there is a claim
  std::weak_ptr<Hold> holder_;  ///< the present user's
  bool is_contended_ = false;
  /// The claim had to wait, so others may wait behind it. Until the store reports contention, it
  /// would be passed on without a bound.
  bool was_waited_for_ = false;
  unsigned in_a_row_ = 0;  ///< passed on while others wait, or may wait
  TimePoint idle_since_{};
  bool is_armed_ = false;    ///< a timer is, or will be
  std::size_t waiting_ = 0;  ///< size of waiters_

  Waiters waiters_;  ///< loop only
  std::uint64_t last_waiter_ = 0;
  bool is_led_ = false;                 ///< one of us asks the store; loop only
  std::weak_ptr<Acquisition> leading_;  ///< the one that asks, or asked last
  bool was_answered_ = false;           ///< the last one that ended had an answer of the store
};

}  // namespace dlock::core
