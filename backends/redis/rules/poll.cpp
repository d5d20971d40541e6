// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/poll.hpp"

#include <algorithm>

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kFront = 8;           ///< number of waiters that poll at the full rate
constexpr std::int64_t kExpiryWatchers = 4;  ///< number of waiters that poll when the lease ends
constexpr std::int64_t kSlowest = 5;
constexpr milliseconds kShortest{5};
constexpr milliseconds kSlowLink{600};  ///< how late a poll may arrive

}  // namespace

Duration poll_delay(const QueuePosition& position, milliseconds bound, std::uint64_t dice) {
  Duration longest = bound;
  if (position.rank > kFront) {
    longest = std::min<Duration>(longest * position.rank / kFront, longest * kSlowest);
  }
  // Somewhere in the last quarter before the bound.
  const auto quarter = longest.count() / 4;
  const auto jitter =
      quarter > 0 ? static_cast<std::int64_t>(dice % static_cast<std::uint64_t>(quarter)) : 0;
  Duration delay(longest.count() - jitter);
  if (position.remaining.count() >= 0 && position.rank < kExpiryWatchers) {
    // The server rounds what is left down to milliseconds.
    delay = std::min<Duration>(delay, position.remaining + milliseconds(1));
  }
  return std::max<Duration>(delay, kShortest);
}

milliseconds waiter_patience(milliseconds bound) {
  // A waiter that misses one poll keeps its place.
  return 2 * kSlowest * bound + milliseconds(1000);
}

milliseconds near_patience(milliseconds bound) { return bound + kSlowLink; }

}  // namespace dlock::redis
