// SPDX-License-Identifier: Apache-2.0
//
// From what the server says of itself to what the store promises, with the setting that lowers it
// named. Pure.
#pragma once

#include "backends/redis/rules/info.hpp"
#include "dlock/capabilities.hpp"

namespace dlock::redis {

struct Declaration {
  /// The operator says that every write is fsynced before it is answered.
  bool fsync_always_declared = false;
  /// The subscription is not allowed: waiters only poll.
  bool wake_up_denied = false;
  /// Who comes first has the lock first, as long as waiters can be woken.
  bool fair = false;
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds lock_delay{0};
  std::chrono::milliseconds shortest_lease{0};
  std::chrono::milliseconds longest_lease{0};
};

Capabilities declare(const ServerFacts& facts, const Declaration& declaration);

}  // namespace dlock::redis
