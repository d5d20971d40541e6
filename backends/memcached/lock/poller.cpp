// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/poller.hpp"

#include <algorithm>

namespace dlock::memcached {

void Poller::add(KeyClaim& claim) {
  // One that tried in vain keeps its place.
  if (claim.arrival == 0) {
    claim.arrival = ++last_arrival_;
    pause_ = pace_.shortest;
  }
  claim.woken = false;
  waiters_[claim.key][claim.arrival] = &claim;
}

void Poller::remove(KeyClaim& claim) {
  const auto found = waiters_.find(claim.key);
  if (found == waiters_.end()) return;
  found->second.erase(claim.arrival);
  if (found->second.empty()) waiters_.erase(found);
}

KeyClaim* Poller::next(const std::string& key) {
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return nullptr;
  for (const auto& [arrival, claim] : found->second) {
    if (!claim->woken) return claim;
  }
  return nullptr;
}

std::vector<std::string> Poller::keys() const {
  std::vector<std::string> keys;
  keys.reserve(waiters_.size());
  for (const auto& [key, claims] : waiters_) keys.push_back(key);
  return keys;
}

void Poller::add_stray(ReleaseOrder stray, TimePoint until) {
  strays_.push_back({std::move(stray), until});
}

std::vector<ReleaseOrder> Poller::strays(TimePoint now) {
  std::erase_if(strays_, [&](const Stray& stray) { return stray.until <= now; });
  std::vector<ReleaseOrder> orders;
  orders.reserve(strays_.size());
  for (const auto& stray : strays_) orders.push_back(stray.order);
  return orders;
}

Duration Poller::pause(std::uint64_t dice) {
  // No caller waits for a stray.
  const auto base =
      waiters_.empty() ? std::max<Duration>(pace_.longest, std::chrono::milliseconds(250)) : pause_;
  pause_ = std::min(pause_ + pause_ / 4, pace_.longest);
  // Three quarters of it to five quarters.
  const auto jitter = static_cast<Duration::rep>(dice % 1024);
  return base * 3 / 4 + base / 2 * jitter / 1024;
}

}  // namespace dlock::memcached
