// SPDX-License-Identifier: Apache-2.0
//
// How to acquire. All members are trivially destructible on purpose: `co_await
// lock->async_acquire({...})` with anything else is miscompiled by g++ 12.
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
  /// `invalid_argument` names the setting. A store's `lock_delay` comes on top of it.
  std::optional<std::chrono::milliseconds> lease = std::nullopt;

  /// shared: beside other readers, after whoever waits before us. A store without shared mode
  /// (Capabilities::shared_mode), and a route with `migrate`, refuse it: `invalid_argument`, before
  /// anything is sent.
  Mode mode = Mode::exclusive;

  /// Where to write what the error code cannot say. Must outlive the operation. Default: nowhere.
  Diagnostics* diagnostics = nullptr;

  /// How long the lock may be held at most, from the grant on, whatever the renewals: then it is
  /// lost (LossReason::max_hold), told, and given back as LockManager::close() gives it back.
  /// Default: the route's `max_hold`, else the store's, else without a limit. Not positive:
  /// `invalid_argument`.
  std::optional<std::chrono::milliseconds> max_hold = std::nullopt;

  /// LockHandle::progress() must be called at least so often, the first time so long after the
  /// grant: a holder that hangs loses it (LossReason::no_progress) as with `max_hold`. Default: it
  /// need not be called. Not positive: `invalid_argument`.
  std::optional<std::chrono::milliseconds> progress_every = std::nullopt;

  /// queue_full, at once, if already so many wait, those who hold it not counted; 0: whenever we
  /// would have to wait. Of no meaning where nothing is waited for (`wait` 0). A store that cannot
  /// tell (Capabilities::can_bound_queue) refuses it: `invalid_argument`. Default: the route's
  /// `max_queue`, else the store's, else without a limit.
  std::optional<std::uint32_t> max_queue = std::nullopt;

  /// Priority: in the queue it counts as having come so much earlier. Whoever came after that is
  /// passed, whoever came before is not, so that nobody waits for ever; of two with one, the
  /// earlier by that count. Who has the lock, or was woken for it, keeps it. Of no meaning where
  /// nothing is waited for (`wait` 0), up to a day, of exclusive locks. A store whose tokens are
  /// its places in the queue cannot (Capabilities::can_head_start: Redis and memory can) and
  /// refuses it: `invalid_argument`. Default: none.
  std::chrono::milliseconds head_start{0};

  /// LockHandle::on_contended() is told. A store that cannot (Capabilities::can_tell_contention)
  /// refuses it: `invalid_argument`. What it costs is paid by such a lock alone.
  bool tell_contention = false;

  /// LockHandle::on_revoke() is told. A store that cannot (Capabilities::can_ask) refuses it:
  /// `invalid_argument`. What it costs is paid by such a lock alone.
  bool revocable = false;
};

}  // namespace dlock::inline v0
