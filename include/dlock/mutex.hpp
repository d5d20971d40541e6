// SPDX-License-Identifier: Apache-2.0
//
// Mutex: the std vocabulary over a DistributedLock. TimedLockable, re-entrant per thread; works in
// std::scoped_lock, std::unique_lock and std::condition_variable_any.
//
//   dlock::Mutex m(locks.lock("orders/42"));
//   std::scoped_lock guard(m);
//
// SharedMutex: the same with readers, as std::shared_timed_mutex has them.
//
//   dlock::SharedMutex prices(locks.lock("prices"));
//   std::shared_lock reading(prices);
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <ratio>

#include "dlock/distributed_lock.hpp"

namespace dlock::inline v0 {

namespace detail {

/// Rounds up. Returns zero for a negative duration and for NaN, kWaitForever for a duration that
/// does not fit into milliseconds.
template <class Rep, class Period>
std::chrono::milliseconds saturated_milliseconds(const std::chrono::duration<Rep, Period>& wait) {
  using Wide = std::chrono::duration<long double, std::milli>;
  const Wide wide(wait);
  if (!(wide.count() > 0)) return std::chrono::milliseconds(0);
  if (wide >= Wide(kWaitForever)) return kWaitForever;
  return std::chrono::milliseconds(
      static_cast<std::chrono::milliseconds::rep>(std::ceil(wide.count())));
}

/// Returns the time until `when`, by its clock now.
template <class Clock, class Duration>
auto left_until(const std::chrono::time_point<Clock, Duration>& when) {
  using Wide = std::chrono::duration<long double, typename Duration::period>;
  // Not the difference itself: it overflows for time_point::max().
  return Wide(when.time_since_epoch()) - Wide(Clock::now().time_since_epoch());
}

}  // namespace detail

/// Re-entry is counted per manager, lock name and thread. Two Mutexes of one manager and name
/// re-enter each other on the same thread, and exclude each other across threads. For a lock
/// without a manager (DistributedLock::context()) it is counted per lock object and thread.
/// Thread safety: all members may be called from any thread.
class Mutex {
 public:
  explicit Mutex(std::shared_ptr<DistributedLock> lock);

  /// Waits for ever (or for the route's `wait`). Throws LockError as DistributedLock::acquire does;
  /// re-entering a lock that was lost throws lock_lost, and one that this thread has in shared mode
  /// (SharedMutex) operation_not_permitted.
  void lock();
  /// Asks once. Returns false if another client holds the lock. Throws LockError for a failure.
  bool try_lock();
  /// Returns false when the time is over, also if the store had not answered by then (the first use
  /// of a slow one). Throws LockError for a failure: `unavailable` if the store was seen to be out
  /// of reach, lock_lost as lock() does. Accepts any duration: from about ten years on the wait has
  /// no end. Zero, a negative duration and NaN ask once.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(detail::saturated_milliseconds(wait));
  }
  /// Waits until `when`, by its clock at the call: a clock that is set later does not change the
  /// wait.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(detail::left_until(when));
  }

  /// Leaves once; the outermost call releases and waits, bounded. Never throws for what the store
  /// does. Throws LockError{operation_not_permitted} if the calling thread does not own it: a bug.
  void unlock();
  /// As unlock(), but reports the result in `ec` and does not throw:
  /// - lock_lost: the lock was not held any more, by the store's answer or by the local deadline;
  /// - unavailable, for the outermost call only: the store did not confirm the release in time (it
  ///   continues in the background);
  /// - operation_not_permitted: the calling thread does not own it;
  /// - closed: this is a fork()ed child, nothing was done.
  void unlock(error_code& ec);

  /// The calling thread's handle, for its token, check() and stop_token(); null if it has none.
  /// Valid until this thread's outermost unlock().
  LockHandle* held() const;

 private:
  bool try_lock_within(std::chrono::milliseconds wait);

  std::shared_ptr<DistributedLock> lock_;
};

/// Readers together, a writer alone, on a store with shared mode. SharedTimedLockable; also works
/// in std::shared_lock. Where the store is fair, a request waits behind all earlier requests:
/// readers never starve a writer, nor the reverse.
///
/// Re-entry is counted as Mutex counts it, and in the same table: a Mutex and a SharedMutex of one
/// name re-enter each other. A thread that holds it exclusively may call lock_shared(), and it
/// stays exclusive. If the thread then calls unlock() first, the rest is shared from then on,
/// without a gap. A thread that holds it only shared and calls lock() or try_lock() would wait for
/// itself: LockError {operation_not_permitted}.
/// Thread safety: all members may be called from any thread.
class SharedMutex {
 public:
  explicit SharedMutex(std::shared_ptr<DistributedLock> lock);

  /// As Mutex's.
  void lock() { enter(Mode::exclusive, std::nullopt, false); }
  bool try_lock() { return enter(Mode::exclusive, std::chrono::milliseconds(0), true); }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return enter(Mode::exclusive, detail::saturated_milliseconds(wait), true);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(detail::left_until(when));
  }
  void unlock();
  void unlock(error_code& ec);

  /// The same in shared mode. Throws LockError{invalid_argument} where the store has none.
  void lock_shared() { enter(Mode::shared, std::nullopt, false); }
  bool try_lock_shared() { return enter(Mode::shared, std::chrono::milliseconds(0), true); }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return enter(Mode::shared, detail::saturated_milliseconds(wait), true);
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_shared_for(detail::left_until(when));
  }
  void unlock_shared();
  void unlock_shared(error_code& ec);

  /// Turns the calling thread's last lock() into a lock_shared(). If no other lock() of the thread
  /// is left, the lock is shared from then on, without a gap: LockHandle::downgrade(). Throws
  /// LockError with the codes of the other form, except `unavailable`: operation_not_permitted
  /// (this thread has no lock()), lock_lost, not_supported.
  void unlock_and_lock_shared();
  /// Same. After not_supported and operation_not_permitted nothing has changed.
  void unlock_and_lock_shared(error_code& ec);

  /// As Mutex::held().
  LockHandle* held() const;

 private:
  bool enter(Mode mode, std::optional<std::chrono::milliseconds> wait, bool try_only);

  std::shared_ptr<DistributedLock> lock_;
};

}  // namespace dlock::inline v0
