// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/lock/listings.hpp"

#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {
namespace {

Listing listing_of(const Reply& reply) {
  Listing listing;
  if (reply.rc == ZOK) listing.line = std::make_shared<const Queue>(reply.children);
  listing.rc = reply.rc;
  return listing;
}

}  // namespace

Listings::Ask Listings::ask(const std::string& directory) {
  const auto [lock, is_first] = asked_.try_emplace(directory);
  if (!is_first) {
    PendingListing share(env_);
    lock->second.push_back(share);
    return Ask(std::move(share));
  }
  return {shared_from_this(), lock, session_->client().children(directory)};
}

asio::awaitable<Listing> Listings::Ask::wait(Ask ask, TimePoint deadline) {
  if (ask.share_) {
    auto listing = co_await ask.share_->get_until(deadline);
    co_return listing ? std::move(*listing) : Listing();
  }
  const auto reply = co_await ask.own_->get_until(deadline);
  co_return reply ? listing_of(*reply) : Listing();
}

Listings::Ask::~Ask() {
  if (listings_) or_end([this] { listings_->answered(lock_); });
}

// Without a deadline: a request is answered, or lost with its connection or its session.
asio::awaitable<void> Listings::take(std::shared_ptr<Listings> self, Asked::iterator lock,
                                     PendingReply pending, std::vector<PendingListing> askers) {
  const auto reply = co_await reply_until(std::move(pending), kNever);
  const auto listing = listing_of(reply);
  for (const auto& asker : askers) asker.set(listing);
  self->answered(lock);
}

void Listings::answered(Asked::iterator lock) {
  auto askers = std::exchange(lock->second, {});
  if (!askers.empty() && session_->connected()) return send(lock, std::move(askers));
  asked_.erase(lock);
  Listing lost;
  lost.rc = ZCONNECTIONLOSS;
  for (const auto& asker : askers) asker.set(lost);
}

void Listings::send(Asked::iterator lock, std::vector<PendingListing> askers) {
  auto pending = session_->client().children(lock->first);
  spawn(env_, take(shared_from_this(), lock, std::move(pending), std::move(askers)));
}

}  // namespace dlock::zookeeper
