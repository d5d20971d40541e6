// SPDX-License-Identifier: Apache-2.0
//
// Listings of locks' nodes, shared by the claims of this process. Each lock has one listing under
// way at a time. Claims that ask meanwhile share the next one, which is sent after the answer. So a
// listing always contains what its claims sent before they asked. Six thousand claims for one lock
// cost one listing per round trip, not six thousand of 360 KB each.
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
  /// The claims that share the next listing, by lock with a listing under way.
  using Asked = std::map<std::string, std::vector<PendingListing>>;

 public:
  Listings(Env& env, std::shared_ptr<Session> session) : env_(env), session_(std::move(session)) {}

  /// A claim's request for a listing: usually its own listing, whose end starts the next shared
  /// one. Otherwise a share in the next listing.
  class Ask {
   public:
    ~Ask();
    Ask(Ask&&) noexcept = default;
    Ask& operator=(Ask&&) = delete;
    Ask(const Ask&) = delete;
    Ask& operator=(const Ask&) = delete;

    /// Returns the listing, or ZOPERATIONTIMEOUT at the deadline. May be called once.
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
