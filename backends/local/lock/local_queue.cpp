// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/local_queue.hpp"

#include <algorithm>
#include <utility>

#include "backends/local/lock/claim.hpp"

namespace dlock::local {
namespace {

// A part of the 1,024 descriptors that a process may usually have.
constexpr std::size_t kMostKept = 64;

}  // namespace

void LocalQueue::join(std::uint64_t ticket, const std::shared_ptr<LocalClaim>& claim) {
  const bool shared = claim->request().mode == Mode::shared;
  if (places_.emplace(ticket, Place{claim, shared}).second && shared) ++readers_;
}

// A claim that leaves from the middle can only let readers pass.
bool LocalQueue::leave(std::uint64_t ticket) noexcept {
  const auto place = places_.find(ticket);
  if (place == places_.end()) return false;
  const bool was_first = place == places_.begin();
  if (place->second.shared) --readers_;
  places_.erase(place);
  return !places_.empty() && (was_first || readers_ > 0);
}

void LocalQueue::share(std::uint64_t ticket) noexcept {
  const auto place = places_.find(ticket);
  if (place == places_.end() || std::exchange(place->second.shared, true)) return;
  ++readers_;
}

std::shared_ptr<LocalClaim> LocalQueue::first() const noexcept {
  return places_.empty() ? nullptr : places_.begin()->second.claim.lock();
}

bool LocalQueue::is_looker(std::uint64_t ticket) const noexcept {
  if (places_.empty()) return false;
  if (places_.begin()->first == ticket) return true;
  if (readers_ < 2) return false;
  for (const auto& [number, place] : places_) {
    if (!place.shared) return false;
    if (number == ticket) return true;
  }
  return false;
}

void LocalQueue::notify_lookers() const noexcept {
  for (auto place = places_.begin(); place != places_.end(); ++place) {
    if (place != places_.begin() && !place->second.shared) return;
    const auto claim = place->second.claim.lock();
    if (claim && claim->state == LocalClaim::State::waiting) claim->signal.notify();
    if (!place->second.shared) return;
  }
}

std::uint64_t LocalQueue::next_behind(std::uint64_t ticket, Mode mode) const noexcept {
  auto place = places_.upper_bound(ticket);
  const auto passes = [mode](const Place& one) {
    return one.claim.expired() || (mode == Mode::exclusive && one.shared);
  };
  while (place != places_.end() && passes(place->second)) ++place;
  return place == places_.end() ? kLastTicket + 1 : place->first;
}

std::vector<std::shared_ptr<LocalClaim>> LocalQueue::everybody() const {
  std::vector<std::shared_ptr<LocalClaim>> claims;
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.claim.lock()) claims.push_back(std::move(claim));
  }
  return claims;
}

std::shared_ptr<LocalClaim> LocalQueue::anybody() const noexcept {
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.claim.lock()) return claim;
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
