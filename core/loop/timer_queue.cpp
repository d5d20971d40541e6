// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

#include <new>

namespace dlock::core {
namespace {

constexpr std::size_t kSpare = 16;
/// An id is its slot's place, from 1 on, and above that how often the slot was used.
constexpr TimerId kSlots = TimerId{1} << 24;
constexpr std::size_t slot_of(TimerId id) { return static_cast<std::size_t>(id % kSlots) - 1; }

}  // namespace

TimerQueue::TimerQueue() { spare_.reserve(kSpare); }

std::size_t TimerQueue::take_slot() {
  if (first_free_ == slots_.size()) {
    if (slots_.size() + 1 >= kSlots) throw std::bad_alloc();
    const auto slot = slots_.size();
    slots_.push_back({ordered_.end(), kSlots + slot + 1, slot + 1});
  }
  const auto slot = first_free_;
  first_free_ = slots_[slot].next_free;
  return slot;
}

void TimerQueue::free_slot(std::size_t slot) noexcept {
  slots_[slot].id += kSlots;
  slots_[slot].next_free = first_free_;
  slots_[slot].place = ordered_.end();
  first_free_ = slot;
}

TimerQueue::Slot* TimerQueue::find(TimerId id) noexcept {
  const auto slot = slot_of(id);
  if (slot >= slots_.size() || slots_[slot].id != id) return nullptr;
  return slots_[slot].place == ordered_.end() ? nullptr : &slots_[slot];
}

TimerQueue::Ordered::iterator TimerQueue::place(TimePoint when, Entry entry) {
  if (spare_.empty()) return ordered_.emplace(when, std::move(entry));
  auto node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = when;
  node.mapped() = std::move(entry);
  return ordered_.insert(std::move(node));
}

TimerId TimerQueue::add(TimePoint when, Job job) {
  const auto slot = take_slot();
  const auto id = slots_[slot].id;
  try {
    slots_[slot].place = place(when, Entry{id, std::move(job)});
  } catch (...) {
    free_slot(slot);
    throw;
  }
  return id;
}

Job TimerQueue::take(Slot& slot) noexcept {
  auto node = ordered_.extract(slot.place);
  free_slot(slot_of(slot.id));
  auto job = std::move(node.mapped().job);
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(node));
  return job;
}

void TimerQueue::move(TimerId id, TimePoint when) noexcept {
  auto* const slot = find(id);
  if (slot == nullptr) return;
  auto node = ordered_.extract(slot->place);
  node.key() = when;
  slot->place = ordered_.insert(std::move(node));
}

void TimerQueue::remove(TimerId id) noexcept {
  if (auto* const slot = find(id)) take(*slot);
}

TimePoint TimerQueue::next() const noexcept {
  return ordered_.empty() ? kNever : ordered_.begin()->first;
}

Job TimerQueue::take_due(TimePoint now) {
  if (ordered_.empty() || ordered_.begin()->first > now) return {};
  return take(*find(ordered_.begin()->second.id));
}

}  // namespace dlock::core
