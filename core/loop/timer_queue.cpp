// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

namespace dlock::core {

TimerQueue::Ordered::iterator TimerQueue::place(TimePoint when, Entry entry) {
  auto node = spare_ordered_.take();
  if (node.empty()) return ordered_.emplace(when, std::move(entry));
  node.key() = when;
  node.mapped() = std::move(entry);
  return ordered_.insert(std::move(node));
}

void TimerQueue::name(TimerId id, Ordered::iterator place) {
  auto node = spare_by_id_.take();
  if (node.empty()) {
    by_id_.emplace(id, place);
    return;
  }
  node.key() = id;
  node.mapped() = place;
  by_id_.insert(std::move(node));
}

TimerId TimerQueue::add(TimePoint when, Job job) {
  const TimerId id = ++last_id_;
  const auto at = place(when, Entry{id, std::move(job)});
  try {
    name(id, at);
  } catch (...) {
    // Nobody could cancel it.
    ordered_.erase(at);
    throw;
  }
  return id;
}

Job TimerQueue::take(ById::iterator timer) noexcept {
  auto node = ordered_.extract(timer->second);
  auto job = std::move(node.mapped().job);
  spare_ordered_.keep(std::move(node));
  spare_by_id_.keep(by_id_.extract(timer));
  return job;
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
  if (found != by_id_.end()) take(found);
}

TimePoint TimerQueue::next() const noexcept {
  return ordered_.empty() ? kNever : ordered_.begin()->first;
}

Job TimerQueue::take_due(TimePoint now) {
  if (ordered_.empty() || ordered_.begin()->first > now) return {};
  return take(by_id_.find(ordered_.begin()->second.id));
}

}  // namespace dlock::core
