// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

namespace dlock::core {

TimerId TimerQueue::add(TimePoint when, Job job) {
  const TimerId id = ++last_id_;
  const auto place = ordered_.emplace(when, Entry{id, std::move(job)});
  try {
    by_id_.emplace(id, place);
  } catch (...) {
    // Nobody could cancel it.
    ordered_.erase(place);
    throw;
  }
  return id;
}

void TimerQueue::move(TimerId id, TimePoint when) noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  auto node = ordered_.extract(found->second);
  node.key() = when;
  found->second = ordered_.insert(std::move(node));
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
