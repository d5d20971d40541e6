// SPDX-License-Identifier: Apache-2.0
//
// Derives the store's guarantee from the server's settings, and names each setting that lowers it.
// Pure.
#pragma once

#include "backends/redis/rules/info.hpp"
#include "dlock/capabilities.hpp"

namespace dlock::redis {

struct Declaration {
  /// The operator says that every write is fsynced before it is answered.
  bool fsync_always_declared = false;
  /// The subscription is not allowed: waiters only poll.
  bool wake_up_denied = false;
  /// Waiters acquire in the order of arrival, while they can be notified.
  bool fair = false;
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds lock_delay{0};
  std::chrono::milliseconds shortest_lease{0};
  std::chrono::milliseconds longest_lease{0};
};

Capabilities declare(const ServerFacts& facts, const Declaration& declaration);

}  // namespace dlock::redis
