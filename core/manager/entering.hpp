// SPDX-License-Identifier: Apache-2.0
//
// Used by Mutex and SharedMutex: enters and leaves a lock, per thread, in one mode or the other.
#pragma once

#include <chrono>
#include <optional>

#include "core/manager/nesting.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::core {

/// False: it was not obtained in time; only with `try_only`. Throws as Mutex::lock() does. `call`:
/// which one of the user's it is.
bool enter(DistributedLock& lock, Mode mode, std::optional<std::chrono::milliseconds> wait,
           bool try_only, const Call& call);
/// Returns the code of Mutex::unlock(ec).
error_code leave(DistributedLock& lock, Mode mode);
/// Returns the code of SharedMutex::unlock_and_lock_shared(ec).
error_code step_down(DistributedLock& lock);
/// The calling thread's; null if it has none.
LockHandle* held_here(const DistributedLock& lock);

/// Throws LockError.
[[noreturn]] void fail(errc error, const DistributedLock& lock);

}  // namespace dlock::core
