// SPDX-License-Identifier: Apache-2.0
//
// What the calling thread has, for LockOrder: handles that it has taken by blocking calls, a
// Mutex's and synchronized()'s among them, and not given back. Nothing is looked up while it has
// nothing, and a thread's list is bounded.
#pragma once

#include "core/manager/lock_order.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::core {

/// It is about to ask for that lock.
void note_asked(const DistributedLock& lock, const AcquireOptions& options);
/// It has been given that; an empty one is nothing.
void note_taken(const LockHandle& handle);

/// What it asks for meanwhile is asked for by that call.
class CallScope {
 public:
  /// `call` outlives it.
  explicit CallScope(const Call& call) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

}  // namespace dlock::core
