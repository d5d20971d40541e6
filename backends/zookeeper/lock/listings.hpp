// SPDX-License-Identifier: Apache-2.0
//
// Listings of locks' nodes, shared by the contenders of this process: of each lock one is under way
// at a time, and who asks meanwhile shares the next, which is sent when that one has been answered.
// So a listing always contains what its askers sent before they asked, and six thousand contenders
// for one lock cost as many listings as there are round trips, not six thousand of 360 KB each.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/rules/queue.hpp"
#include "backends/zookeeper/wire/session.hpp"

namespace dlock::zookeeper {

struct Listing {
  int rc = ZOPERATIONTIMEOUT;
  std::shared_ptr<const Queue> line;  ///< if rc is ZOK
};

class Listings : public std::enable_shared_from_this<Listings> {
  using PendingListing = OneShot<Listing>;
  /// Of a lock with a listing under way: whoever shares the next.
  using Asked = std::map<std::string, std::vector<PendingListing>>;

 public:
  Listings(Env& env, std::shared_ptr<Session> session) : env_(env), session_(std::move(session)) {}

  /// What a contender has asked for: a listing of its own, as a rule; with its end the others have
  /// their turn. Or a share in theirs.
  class Ask {
   public:
    ~Ask();
    Ask(Ask&&) noexcept = default;
    Ask& operator=(Ask&&) = delete;
    Ask(const Ask&) = delete;
    Ask& operator=(const Ask&) = delete;

    /// Once. The listing, or ZOPERATIONTIMEOUT at the deadline.
    static asio::awaitable<Listing> wait(Ask ask, TimePoint deadline);

   private:
    friend class Listings;
    explicit Ask(PendingListing share) : share_(std::move(share)) {}
    Ask(std::shared_ptr<Listings> listings, Asked::iterator lock, PendingReply own)
        : listings_(std::move(listings)), lock_(lock), own_(std::move(own)) {}

    std::optional<PendingListing> share_;
    std::shared_ptr<Listings> listings_;
    Asked::iterator lock_{};
    std::optional<PendingReply> own_;
  };
  /// Only while the session is connected.
  Ask ask(const std::string& directory);

 private:
  static asio::awaitable<void> take(std::shared_ptr<Listings> self, Asked::iterator lock,
                                    PendingReply pending, std::vector<PendingListing> askers);
  void answered(Asked::iterator lock);
  void send(Asked::iterator lock, std::vector<PendingListing> askers);

  Env& env_;
  std::shared_ptr<Session> session_;
  Asked asked_;
};

}  // namespace dlock::zookeeper
