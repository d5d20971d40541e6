// SPDX-License-Identifier: Apache-2.0
//
// When a waiter looks for itself, although nobody has told it to: a message may be lost, a holder
// may die, and clients of another make tell nobody. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::redis {

struct QueuePosition {
  /// In the queue, 0 is first; of the first waiter of a process: so many processes are before it.
  /// -1: not in it.
  std::int64_t rank = 0;
  /// Of the holder's lease, or of the first try of whoever was woken; -1: unknown or without end.
  std::chrono::milliseconds remaining{-1};
};

/// The first in the queue look at least once per `bound`, and when the holder's lease is over;
/// those far behind up to five times less often, so that the load does not grow with the queue.
/// Jittered, so that waiters do not march in step.
Duration poll_delay(const QueuePosition& position, std::chrono::milliseconds bound,
                    std::uint64_t dice);

/// How long the server keeps a waiter in the queue that does not look any more.
std::chrono::milliseconds waiter_patience(std::chrono::milliseconds bound);

/// Returns how long the server keeps one of the first nine waiters that does not poll.
std::chrono::milliseconds near_patience(std::chrono::milliseconds bound);

}  // namespace dlock::redis
