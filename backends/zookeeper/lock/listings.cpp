// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/lock/listings.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <new>
#include <utility>

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
  try {
    return {shared_from_this(), lock, session_->client().children(directory)};
  } catch (...) {
    asked_.erase(lock);
    throw;
  }
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
  if (!listings_) return;
  try {
    listings_->answered(lock_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): send() says what happens then
  }
}

// Without a deadline: a request is answered, or lost with its connection or its session.
asio::awaitable<void> Listings::take(std::shared_ptr<Listings> self, Asked::iterator lock,
                                     PendingReply pending, std::vector<PendingListing> askers) {
  Listing listing;
  try {
    const auto reply = co_await reply_until(std::move(pending), kNever);
    listing = listing_of(reply);
  } catch (const std::bad_alloc&) {
    listing.rc = ZSYSTEMERROR;
  }
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
  try {
    auto pending = session_->client().children(lock->first);
    auto taking = take(shared_from_this(), lock, std::move(pending), std::move(askers));
    asio::co_spawn(env_.executor(), std::move(taking), asio::detached);
  } catch (...) {
    asked_.erase(lock);  // out of memory: they wait for their deadlines, and ask again
    throw;
  }
}

}  // namespace dlock::zookeeper
