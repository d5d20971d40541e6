// SPDX-License-Identifier: Apache-2.0
//
// Decides when a waiter polls without a message: a message may be lost, a holder may die, and other
// client libraries send no message. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::redis {

struct QueuePosition {
  /// The position in the queue; 0 is first. For the first waiter of a process: the number of
  /// processes before it. -1: not in the queue.
  std::int64_t rank = 0;
  /// The rest of the holder's lease, or of the notified waiter's first try. -1: unknown or without
  /// end.
  std::chrono::milliseconds remaining{-1};
};

/// The first waiters poll at least once per `bound`, and when the holder's lease ends. Waiters far
/// behind poll up to five times less often, so the load does not grow with the queue. Jitter keeps
/// waiters from polling in step.
Duration poll_delay(const QueuePosition& position, std::chrono::milliseconds bound,
                    std::uint64_t dice);

/// Returns how long the server keeps a waiter in the queue that does not poll.
std::chrono::milliseconds waiter_patience(std::chrono::milliseconds bound);

/// Returns how long the server keeps one of the first nine waiters that does not poll.
std::chrono::milliseconds near_patience(std::chrono::milliseconds bound);

}  // namespace dlock::redis
