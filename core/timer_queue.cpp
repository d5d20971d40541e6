// SPDX-License-Identifier: Apache-2.0
#include "core/timer_queue.hpp"

namespace dlock::core {

TimerId TimerQueue::add(TimePoint when, Job job) {
  const TimerId id = ++last_id_;
  by_id_.emplace(id, ordered_.emplace(when, Entry{id, std::move(job)}));
  return id;
}

void TimerQueue::remove(TimerId id) noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  ordered_.erase(found->second);
  by_id_.erase(found);
}

TimePoint TimerQueue::next() const noexcept {
  return ordered_.empty() ? kNever : ordered_.begin()->first;
}

Job TimerQueue::take_due(TimePoint now) {
  if (ordered_.empty() || ordered_.begin()->first > now) return {};
  auto entry = std::move(ordered_.begin()->second);
  by_id_.erase(entry.id);
  ordered_.erase(ordered_.begin());
  return std::move(entry.job);
}

}  // namespace dlock::core
