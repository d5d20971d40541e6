// SPDX-License-Identifier: Apache-2.0
//
// Semaphore: N permits of one name, of which anybody takes one or several, in the vocabulary of
// std::counting_semaphore. Permits are in a LockHandle: lost, told and given back as a lock is.
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

/// Each acquisition is a record of its own in the store, with its owner and its permits; how many
/// are free is counted from the records. So a dead holder's permits come back after its lease, a
/// release gives back what this very acquisition took and nothing else, and there are never more
/// than `limit` in use. First come, first served where the store is fair: who asks for many waits
/// in line, and those behind it with it.
///
/// Not re-entrant: a thread that has permits and asks for more waits for what is free.
/// `options.mode` means nothing here. Copyable; a copy is of the same semaphore.
/// Thread safety: all members may be called from any thread at the same time.
class Semaphore {
 public:
  /// So many permits as a lock: what acquires them.
  using Permits = std::function<std::shared_ptr<DistributedLock>(std::uint32_t permits)>;

  /// For who makes semaphores: a manager, a fake.
  Semaphore(std::string name, std::optional<std::uint32_t> limit, Permits permits);

  const std::string& name() const noexcept { return name_; }
  /// As it was given to LockManager::semaphore(); empty: as many as the store says.
  std::optional<std::uint32_t> limit() const noexcept { return limit_; }

  /// So many permits as a lock: for synchronized(), MultiLock, and async_acquire() in
  /// <dlock/async.hpp>. Throws LockError{invalid_argument} for none, and for more than there are.
  std::shared_ptr<DistributedLock> permits(std::uint32_t count = 1) const;

  /// Waits for so many permits and takes them, all or none. The handle gives them back. Throws as
  /// DistributedLock::acquire(), and LockError{invalid_argument}: none or too many are asked for,
  /// the store has another limit, which the message names, or no limit was given and the store has
  /// none.
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
  /// Same, at once; waits `options.wait` at most, default not at all. nullopt: not so many are
  /// free, or others wait before. Throws as acquire().
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
