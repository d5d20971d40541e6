// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/lock/listings.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <new>
#include <utility>

namespace dlock::zookeeper {

PendingListing Listings::ask(const std::string& directory) {
  PendingListing mine(env_);
  auto& asked = asked_[directory];
  asked.next.push_back(mine);
  if (!asked.under_way) send(directory);
  return mine;
}

void Listings::send(const std::string& directory) {
  auto& asked = asked_[directory];
  asked.under_way = true;
  try {
    auto askers = std::exchange(asked.next, {});
    auto pending = session_->client().children(directory);
    auto taking = take(shared_from_this(), directory, std::move(pending), std::move(askers));
    asio::co_spawn(env_.executor(), std::move(taking), asio::detached);
  } catch (...) {
    asked_.erase(directory);  // out of memory: they wait for their deadlines, and ask again
    throw;
  }
}

// Without a deadline: a request is answered, or lost with its connection or its session.
asio::awaitable<void> Listings::take(std::shared_ptr<Listings> self, std::string directory,
                                     PendingReply pending, std::vector<PendingListing> askers) {
  Listing listing;
  listing.rc = ZSYSTEMERROR;  // out of memory
  try {
    auto reply = co_await reply_until(std::move(pending), kNever);
    if (reply.rc == ZOK) listing.line = std::make_shared<const Queue>(reply.children);
    listing.rc = reply.rc;
  } catch (const std::bad_alloc&) {
  }
  for (const auto& asker : askers) asker.set(listing);
  self->answered(directory);
}

void Listings::answered(const std::string& directory) {
  const auto asked = asked_.find(directory);
  asked->second.under_way = false;
  if (asked->second.next.empty()) {
    asked_.erase(asked);
    return;
  }
  if (session_->connected()) return send(directory);
  const auto askers = std::move(asked->second.next);
  asked_.erase(asked);
  Listing lost;
  lost.rc = ZCONNECTIONLOSS;
  for (const auto& asker : askers) asker.set(lost);
}

asio::awaitable<Listing> listing_until(PendingListing pending, TimePoint deadline) {
  auto listing = co_await pending.get_until(deadline);
  if (!listing) co_return Listing();
  co_return std::move(*listing);
}

}  // namespace dlock::zookeeper
