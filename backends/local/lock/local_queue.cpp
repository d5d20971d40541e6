// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/local_queue.hpp"

#include <algorithm>
#include <utility>

namespace dlock::local {
namespace {

// Of the 1,024 descriptors that a process usually may have.
constexpr std::size_t kMostKept = 64;

}  // namespace

void LocalQueue::join(std::uint64_t ticket, const std::shared_ptr<LocalClaim>& claim) {
  places_.emplace(ticket, claim);
}

bool LocalQueue::leave(std::uint64_t ticket) noexcept {
  const bool was_first = is_first(ticket);
  places_.erase(ticket);
  return was_first && !places_.empty();
}

std::shared_ptr<LocalClaim> LocalQueue::first() const noexcept {
  return places_.empty() ? nullptr : places_.begin()->second.lock();
}

bool LocalQueue::is_first(std::uint64_t ticket) const noexcept {
  return !places_.empty() && places_.begin()->first == ticket;
}

std::uint64_t LocalQueue::next_behind(std::uint64_t ticket) const noexcept {
  auto place = places_.upper_bound(ticket);
  while (place != places_.end() && place->second.expired()) ++place;
  return place == places_.end() ? kLastTicket + 1 : place->first;
}

std::vector<std::shared_ptr<LocalClaim>> LocalQueue::everybody() const {
  std::vector<std::shared_ptr<LocalClaim>> claims;
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.lock()) claims.push_back(std::move(claim));
  }
  return claims;
}

std::shared_ptr<LocalClaim> LocalQueue::anybody() const noexcept {
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.lock()) return claim;
  }
  return nullptr;
}

std::shared_ptr<LocalQueue> LocalQueues::of(const std::string& file) {
  if (auto found = find(file)) return found;
  // Made before there is a place for it: what is missing later must not leave a place without one.
  auto queue = std::make_shared<LocalQueue>(file);
  by_file_.emplace(file, queue);
  return queue;
}

std::shared_ptr<LocalQueue> LocalQueues::find(const std::string& file) const {
  const auto found = by_file_.find(file);
  return found == by_file_.end() ? nullptr : found->second;
}

std::shared_ptr<LocalQueue> LocalQueues::watched(int watch) const {
  const auto found = by_watch_.find(watch);
  return found == by_watch_.end() ? nullptr : found->second.lock();
}

void LocalQueues::set_watch(const std::shared_ptr<LocalQueue>& queue, int watch) {
  if (watch >= 0) by_watch_[watch] = queue;
  queue->watch = watch;
}

int LocalQueues::retire(LocalQueue& queue) noexcept {
  const int watch = std::exchange(queue.watch, -1);
  if (watch >= 0) by_watch_.erase(watch);
  if (queue.kept) return watch;
  const auto found = by_file_.find(queue.file());
  if (found != by_file_.end() && found->second.get() == &queue) by_file_.erase(found);
  return watch;
}

void LocalQueues::keep(LocalQueue& queue, LockFile file) noexcept {
  if (queue.kept) return;
  if (kept_ == kMostKept) close_kept();
  queue.kept = std::move(file);
  ++kept_;
}

LockFile LocalQueues::take_kept(LocalQueue& queue) noexcept {
  if (queue.kept) --kept_;
  return std::exchange(queue.kept, LockFile());
}

bool LocalQueues::close_kept() noexcept {
  if (kept_ == 0) return false;
  for (auto each = by_file_.begin(); each != by_file_.end();) {
    auto& queue = *each->second;
    queue.kept.close();
    each = queue.empty() ? by_file_.erase(each) : std::next(each);
  }
  kept_ = 0;
  return true;
}

std::shared_ptr<LocalClaim> LocalQueues::anybody() const noexcept {
  for (const auto& [file, queue] : by_file_) {
    if (auto claim = queue->anybody()) return claim;
  }
  return nullptr;
}

std::vector<std::shared_ptr<LocalQueue>> LocalQueues::all() const {
  std::vector<std::shared_ptr<LocalQueue>> lines;
  lines.reserve(by_file_.size());
  for (const auto& [file, queue] : by_file_) lines.push_back(queue);
  return lines;
}

}  // namespace dlock::local
