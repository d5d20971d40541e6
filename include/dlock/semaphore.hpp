// SPDX-License-Identifier: Apache-2.0
//
// Semaphore: N permits of one name; each client acquires one or several, in the vocabulary of
// std::counting_semaphore. A LockHandle holds permits: losses and releases work as for a lock.
//
//   dlock::Semaphore slots = locks.semaphore("printers", 3);
//   dlock::LockHandle held = slots.acquire();          // one of three
//   dlock::LockHandle two = slots.acquire(2, {.wait = 5s});
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "dlock/distributed_lock.hpp"
#include "dlock/mutex.hpp"

namespace dlock::inline v0 {

/// The highest limit of a semaphore.
inline constexpr std::uint32_t kMostPermits = 1'000'000;

/// Each acquisition has its own record in the store, with its owner and its permits. The number of
/// free permits is counted from the records. So a dead holder's permits are free again after its
/// lease, and a release frees exactly the permits of its own acquisition. There are never more than
/// `limit` in use. A fair store grants in the order of the requests. A request for many permits
/// waits in the queue, and the requests behind it wait with it.
///
/// Not re-entrant: a thread that has permits and asks for more waits for what is free.
/// `options.mode` has no effect. Copyable; a copy is of the same semaphore.
/// Thread safety: all members may be called from any thread at the same time.
class Semaphore {
 public:
  /// Returns the lock that acquires this number of permits.
  using Permits = std::function<std::shared_ptr<DistributedLock>(std::uint32_t permits)>;

  /// For code that makes semaphores: a manager, a fake.
  Semaphore(std::string name, std::optional<std::uint32_t> limit, Permits permits);

  const std::string& name() const noexcept { return name_; }
  /// As passed to LockManager::semaphore(); empty: the limit in the store.
  std::optional<std::uint32_t> limit() const noexcept { return limit_; }

  /// Returns `count` permits as a lock: for synchronized(), MultiLock, and async_acquire() in
  /// <dlock/async.hpp>. Throws LockError{invalid_argument} for 0, and for more than the limit.
  std::shared_ptr<DistributedLock> permits(std::uint32_t count = 1) const;

  /// Waits for `count` permits and acquires them, all or none. The handle releases them. Throws as
  /// DistributedLock::acquire(). Throws LockError{invalid_argument} for 0 permits, or too many.
  /// Throws it also if the store has another limit, which the message names, or if neither sets a
  /// limit.
  [[nodiscard]] LockHandle acquire(std::uint32_t count = 1, AcquireOptions options = {},
                                   std::stop_token stop = {}) const;
  /// Does not compile: write acquire(1, {.wait = 5s}).
  template <class Rep, class Period, class... More>
  LockHandle acquire(std::chrono::duration<Rep, Period> /*wait*/, More&&... /*more*/) const {
    return detail::refuse_bare_wait<Rep>();
  }
  template <class Rep, class Period, class... More>
  LockHandle acquire(std::uint32_t /*count*/, std::chrono::duration<Rep, Period> /*wait*/,
                     More&&... /*more*/) const {
    return detail::refuse_bare_wait<Rep>();
  }
  /// Tries to acquire `count` permits; waits `options.wait` at most, default not at all. Returns
  /// nullopt if too few are free, or others wait before. Throws as acquire().
  [[nodiscard]] std::optional<LockHandle> try_acquire(std::uint32_t count = 1,
                                                      AcquireOptions options = {},
                                                      std::stop_token stop = {}) const;
  /// Does not compile: write try_acquire_for(5s).
  template <class Rep, class Period, class... More>
  std::optional<LockHandle> try_acquire(std::chrono::duration<Rep, Period> /*wait*/,
                                        More&&... /*more*/) const {
    return detail::refuse_bare_wait<Rep>();
  }
  template <class Rep, class Period, class... More>
  std::optional<LockHandle> try_acquire(std::uint32_t /*count*/,
                                        std::chrono::duration<Rep, Period> /*wait*/,
                                        More&&... /*more*/) const {
    return detail::refuse_bare_wait<Rep>();
  }
  /// nullopt when the time is over. Any duration will do, as with Mutex::try_lock_for().
  template <class Rep, class Period>
  [[nodiscard]] std::optional<LockHandle> try_acquire_for(
      const std::chrono::duration<Rep, Period>& wait, std::uint32_t count = 1) const {
    AcquireOptions options;
    options.wait = detail::saturated_milliseconds(wait);
    return try_acquire(count, options);
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::optional<LockHandle> try_acquire_until(
      const std::chrono::time_point<Clock, Duration>& when, std::uint32_t count = 1) const {
    return try_acquire_for(detail::left_until(when), count);
  }

 private:
  std::string name_;
  std::optional<std::uint32_t> limit_;
  Permits permits_;
};

}  // namespace dlock::inline v0
