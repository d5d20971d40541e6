// SPDX-License-Identifier: Apache-2.0
//
// How to acquire. All members are trivially destructible on purpose: `co_await
// lock->async_acquire({...})` with anything else is miscompiled by g++ 12.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <optional>

#include "dlock/error.hpp"
#include "dlock/mode.hpp"

namespace dlock::inline v0 {

/// Wait without an end. The store's `connect_timeout` still ends a wait on a store that is gone.
inline constexpr std::chrono::milliseconds kWaitForever = std::chrono::milliseconds::max();

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
};

}  // namespace dlock::inline v0
