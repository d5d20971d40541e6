// SPDX-License-Identifier: Apache-2.0
//
// The locks of the calling thread, for LockOrder: handles that it acquired by blocking calls, also
// by a Mutex or synchronized(), and has not released. A thread without locks looks nothing up, and
// a thread's list is bounded.
#pragma once

#include "core/manager/lock_order.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::core {

/// The thread is about to ask for that lock.
void note_asked(const DistributedLock& lock, const AcquireOptions& options);
/// The thread has got that handle; an empty one has no effect.
void note_taken(const LockHandle& handle);

/// Locks that the thread asks for meanwhile are asked for by that call.
class CallScope {
 public:
  /// `call` outlives it.
  explicit CallScope(const Call& call) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

}  // namespace dlock::core
