// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/deadline.hpp"

#include <algorithm>

namespace dlock::zookeeper {

// The session's creation is itself a write that the ensemble committed.
DeadlineRule::DeadlineRule(TimePoint created, Duration timeout)
    : created_(created),
      timeout_(timeout),
      last_write_(created),
      valid_until_(created + timeout * 2 / 3) {}

void DeadlineRule::answered(TimePoint sent, TimePoint received) {
  // A few marks per interval are as good as all: a busy session answers thousands a second. Leaving
  // one out makes the deadline earlier, never later.
  if (!answered_.empty() && sent < answered_.back().sent + timeout_ / 64) return;
  answered_.push_back({sent, received});
  // Only the newest entry that is old enough for every later write can still be a base.
  while (answered_.size() > 1 && answered_[1].received <= sent - interval()) answered_.pop_front();
}

void DeadlineRule::committed(TimePoint sent, TimePoint received) {
  last_write_ = std::max(last_write_, received);
  auto until = std::min(sent + timeout_ * 2 / 3, base_for(sent) + timeout_ * 11 / 12);
  valid_until_ = std::max(valid_until_, until);
  answered(sent, received);
}

TimePoint DeadlineRule::base_for(TimePoint write) const noexcept {
  const auto newer =
      std::upper_bound(answered_.begin(), answered_.end(), write - interval(),
                       [](TimePoint limit, const Mark& mark) { return limit < mark.received; });
  return newer == answered_.begin() ? created_ : std::prev(newer)->sent;
}

}  // namespace dlock::zookeeper
