// SPDX-License-Identifier: Apache-2.0
//
// Listings of locks' nodes, shared by the contenders of this process: of each lock one is under way
// at a time, and who asks meanwhile shares the next, which is sent when that one has been answered.
// So a listing always contains what its askers sent before they asked, and six thousand contenders
// for one lock cost as many listings as there are round trips, not six thousand of 360 KB each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/zookeeper/rules/queue.hpp"
#include "backends/zookeeper/wire/session.hpp"

namespace dlock::zookeeper {

struct Listing {
  int rc = ZOPERATIONTIMEOUT;
  std::shared_ptr<const Queue> line;  ///< if rc is ZOK
};
using PendingListing = OneShot<Listing>;

class Listings : public std::enable_shared_from_this<Listings> {
 public:
  Listings(Env& env, std::shared_ptr<Session> session) : env_(env), session_(std::move(session)) {}

  /// Only while the session is connected.
  PendingListing ask(const std::string& directory);

 private:
  struct Asked {
    bool under_way = false;
    std::vector<PendingListing> next;  ///< whoever shares the one after that
  };
  void send(const std::string& directory);
  static asio::awaitable<void> take(std::shared_ptr<Listings> self, std::string directory,
                                    PendingReply pending, std::vector<PendingListing> askers);
  void answered(const std::string& directory);

  Env& env_;
  std::shared_ptr<Session> session_;
  std::map<std::string, Asked> asked_;
};

/// The listing, or ZOPERATIONTIMEOUT at the deadline.
asio::awaitable<Listing> listing_until(PendingListing pending, TimePoint deadline);

}  // namespace dlock::zookeeper
