// SPDX-License-Identifier: Apache-2.0
//
// Mistakes that the compiler must refuse with the remedy: one for each macro. run.cmake defines
// one of them at a time and searches for the remedy in the compiler's output.
#include <dlock/dlock.hpp>
#include <mutex>
#include <shared_mutex>

using namespace std::chrono_literals;

void misuse(dlock::LockManager& locks, dlock::DistributedLock& lock, dlock::LockHandle& held) {
  const auto slots = locks.semaphore("printers", 3);
#if defined(ACQUIRE_WITH_A_DURATION)
  held = lock.acquire(5s);
#elif defined(ACQUIRE_WITH_A_DURATION_AND_A_STOP_TOKEN)
  held = lock.acquire(500ms, std::stop_token());
#elif defined(TRY_ACQUIRE_WITH_A_DURATION)
  held = lock.try_acquire(5s).value();
#elif defined(ASYNC_ACQUIRE_WITH_A_DURATION)
  lock.async_acquire(5s, 0);
#elif defined(ADOPT_WITH_A_DURATION)
  held = locks.adopt("text", 5s);
#elif defined(PERMIT_WITH_A_DURATION)
  held = slots.acquire(5s);
#elif defined(PERMITS_WITH_A_DURATION)
  held = slots.acquire(2, 5s);
#elif defined(TRY_PERMIT_WITH_A_DURATION)
  held = slots.try_acquire(5s).value();
#elif defined(TRY_PERMITS_WITH_A_DURATION)
  held = slots.try_acquire(2, 5s).value();
#elif defined(ASYNC_ACQUIRE_WITHOUT_ITS_HEADER)
  lock.async_acquire({.wait = 5s}, 0);
#elif defined(PLAIN_ASYNC_ACQUIRE_WITHOUT_ITS_HEADER)
  lock.async_acquire(0);
#elif defined(ASYNC_RELEASE_WITHOUT_ITS_HEADER)
  dlock::async_release(held, 0);
#elif defined(DEFERRED_ASYNC_RELEASE_WITHOUT_ITS_HEADER)
  async_release(held);
#elif defined(ASYNC_DOWNGRADE_WITHOUT_ITS_HEADER)
  dlock::async_downgrade(held, 0);
#elif defined(LOCK_GUARD_OF_A_LOCK)
  const std::lock_guard guard(lock);
#elif defined(SCOPED_LOCK_OF_A_LOCK)
  const std::scoped_lock guard(lock);
#elif defined(UNIQUE_LOCK_OF_A_LOCK)
  const std::unique_lock guard(lock);
#elif defined(TRIED_UNIQUE_LOCK_OF_A_LOCK)
  const std::unique_lock guard(lock, std::try_to_lock);
#elif defined(SHARED_LOCK_OF_A_LOCK)
  const std::shared_lock guard(lock);
#else  // as it should be written: compiles
  held = lock.acquire({.wait = 5s}, std::stop_token());
  held = lock.acquire({});
  held = lock.try_acquire({.wait = 5s}).value();
  held = locks.adopt("text", {.wait = 5s});
  held = slots.acquire(2, {.wait = 5s});
  held = slots.acquire(2, {});
  held = slots.try_acquire_for(5s).value();
#endif
}
