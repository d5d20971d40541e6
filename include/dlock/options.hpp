// SPDX-License-Identifier: Apache-2.0
//
// How to acquire. All members are trivially destructible on purpose: with any other member, g++ 12
// miscompiles `co_await lock->async_acquire({...})`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>

#include "dlock/error.hpp"
#include "dlock/mode.hpp"

namespace dlock::inline v0 {

/// Wait without an end. The store's `connect_timeout` still ends a wait on a store that is gone.
inline constexpr std::chrono::milliseconds kWaitForever = std::chrono::milliseconds::max();

/// A shorter wait lasts until the first answer of the store, and this long at most.
inline constexpr std::chrono::milliseconds kFirstAnswer{1000};

struct AcquireOptions {
  /// How long to wait for the lock. 0 tries once. Default: the route's `wait`, else for ever
  /// (`acquire`) or 0 (`try_acquire`).
  std::optional<std::chrono::milliseconds> wait = std::nullopt;

  /// The longest that a dead holder may block the others. Default: the store's `lease`. A store
  /// whose lease belongs to the session, or that has none, accepts any value it beats, else
  /// `invalid_argument` names the setting. A store's `lock_delay` is added to it.
  std::optional<std::chrono::milliseconds> lease = std::nullopt;

  /// shared: together with other readers, after the earlier waiters. A store without shared mode
  /// (Capabilities::shared_mode), and a route with `migrate`, refuse it: `invalid_argument`, before
  /// anything is sent.
  Mode mode = Mode::exclusive;

  /// Where to write what the error code cannot say. Must outlive the operation. Default: nowhere.
  Diagnostics* diagnostics = nullptr;

  /// Longest time to hold the lock, from the grant on, whatever the renewals. Then the lock is lost
  /// (LossReason::max_hold), the holder is notified, and the lock is released as
  /// LockManager::close() releases it. Default: the route's `max_hold`, else the store's, else
  /// without a limit. Not positive: `invalid_argument`.
  std::optional<std::chrono::milliseconds> max_hold = std::nullopt;

  /// Longest time between two calls of LockHandle::progress(), and between the grant and the first.
  /// A holder that hangs loses the lock (LossReason::no_progress) as with `max_hold`. Default: no
  /// calls are needed. Not positive: `invalid_argument`.
  std::optional<std::chrono::milliseconds> progress_every = std::nullopt;

  /// Longest queue. If this number of clients wait already, holders not counted, the acquire fails
  /// at once with queue_full. 0: it fails whenever it would have to wait. No effect if it does not
  /// wait (`wait` 0). A store without Capabilities::can_bound_queue refuses it: `invalid_argument`.
  /// Default: the route's `max_queue`, else the store's, else without a limit.
  std::optional<std::uint32_t> max_queue = std::nullopt;

  /// Priority: the acquire is queued as if it had arrived earlier by this time, up to a day. It
  /// passes the waiters that arrived after that time. It does not pass earlier ones, so that no
  /// client waits without an end. Two acquires with a head start are ordered by the time that is
  /// counted. A client that holds the lock, or was woken for it, keeps it. For exclusive locks; no
  /// effect if the acquire does not wait (`wait` 0). A store whose tokens are its places in the
  /// queue cannot do it, and refuses it: `invalid_argument` (Capabilities::can_head_start: Redis
  /// and memory can). Default: none.
  std::chrono::milliseconds head_start{0};

  /// Enables LockHandle::on_contended(). A store without Capabilities::can_tell_contention refuses
  /// it: `invalid_argument`. Only locks with this option have its cost.
  bool tell_contention = false;

  /// Enables LockHandle::on_revoke(). A store without Capabilities::can_ask refuses it:
  /// `invalid_argument`. Only locks with this option have its cost.
  bool revocable = false;
};

}  // namespace dlock::inline v0
