// SPDX-License-Identifier: Apache-2.0
//
// Mutex: the std vocabulary over a DistributedLock. TimedLockable, re-entrant per thread; works in
// std::scoped_lock, std::unique_lock and std::condition_variable_any.
//
//   dlock::Mutex m(locks.lock("orders/42"));
//   std::scoped_lock guard(m);
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "dlock/distributed_lock.hpp"

namespace dlock::inline v0 {

/// Re-entry is counted per manager, lock name and thread: two Mutexes of one manager on one name
/// re-enter each other on the same thread, and exclude each other across threads.
/// Thread safety: all members may be called from any thread.
class Mutex {
 public:
  explicit Mutex(std::shared_ptr<DistributedLock> lock);

  /// Waits for ever (or for the route's `wait`). Throws LockError as DistributedLock::acquire does;
  /// re-entering a lock that was lost throws lock_lost.
  void lock();
  /// Tries once. Throws LockError for anything but busy.
  bool try_lock();
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(std::chrono::ceil<std::chrono::milliseconds>(wait));
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(when - Clock::now());
  }

  /// Leaves once; the outermost call releases and waits, bounded. Never throws for what the store
  /// does. Throws LockError{operation_not_permitted} if the calling thread does not own it: a bug.
  void unlock();

  /// The calling thread's handle, for its token, check() and stop_token(); null if it has none.
  /// Valid until this thread's outermost unlock().
  LockHandle* held() const;

 private:
  bool try_lock_within(std::chrono::milliseconds wait);
  bool enter(std::optional<std::chrono::milliseconds> wait, bool try_only);

  std::shared_ptr<DistributedLock> lock_;
};

}  // namespace dlock::inline v0
