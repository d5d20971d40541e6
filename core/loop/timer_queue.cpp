// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dlock::core {
namespace {

/// An id is its slot's place, from 1 on, and above that how often the slot was used.
constexpr TimerId kSlots = TimerId{1} << 24;
constexpr std::size_t slot_of(TimerId id) { return static_cast<std::size_t>(id % kSlots) - 1; }

constexpr std::size_t kChildren = 4;
constexpr std::size_t parent_of(std::size_t place) { return (place - 1) / kChildren; }

}  // namespace

void TimerQueue::add_slot() {
  const auto slot = slots_.size();
  if (slot + 1 >= kSlots) throw std::length_error("too many timers");
  slots_.push_back({kSlots + slot + 1, {}, slot + 1, false});
}

TimerQueue::Slot* TimerQueue::find(TimerId id) noexcept {
  const auto slot = slot_of(id);
  if (slot >= slots_.size() || slots_[slot].id != id) return nullptr;
  return slots_[slot].is_used ? &slots_[slot] : nullptr;
}

void TimerQueue::put(std::size_t place, const Entry& entry) noexcept {
  heap_[place] = entry;
  slots_[entry.slot].place = place;
}

void TimerQueue::settle(std::size_t place, const Entry& entry) noexcept {
  while (place != 0 && entry < heap_[parent_of(place)]) {
    put(place, heap_[parent_of(place)]);
    place = parent_of(place);
  }
  for (;;) {
    const auto first = kChildren * place + 1;
    const auto end = std::min(first + kChildren, heap_.size());
    if (first >= end) break;
    auto least = first;
    for (auto child = first + 1; child < end; ++child) {
      if (heap_[child] < heap_[least]) least = child;
    }
    if (!(heap_[least] < entry)) break;
    put(place, heap_[least]);
    place = least;
  }
  put(place, entry);
}

TimerId TimerQueue::add(TimePoint when, Job job) {
  if (first_free_ == slots_.size()) add_slot();
  const auto at = first_free_;
  auto& slot = slots_[at];
  first_free_ = std::exchange(slot.place, heap_.size());
  slot.is_used = true;
  slot.job = std::move(job);
  const Entry entry{when, ++last_order_, at};
  heap_.push_back(entry);
  settle(slot.place, entry);
  return slot.id;
}

Job TimerQueue::take(Slot& slot) noexcept {
  const auto place = slot.place;
  const auto last = heap_.back();
  heap_.pop_back();
  if (place != heap_.size()) settle(place, last);
  const auto at = slot_of(slot.id);
  slot.id += kSlots;
  slot.place = std::exchange(first_free_, at);
  slot.is_used = false;
  return std::move(slot.job);
}

void TimerQueue::remove(TimerId id) noexcept {
  if (auto* const slot = find(id)) take(*slot);
}

TimePoint TimerQueue::next() const noexcept { return heap_.empty() ? kNever : heap_.front().when; }

Job TimerQueue::take_due(TimePoint now) {
  if (heap_.empty() || heap_.front().when > now) return {};
  return take(slots_[heap_.front().slot]);
}

}  // namespace dlock::core
