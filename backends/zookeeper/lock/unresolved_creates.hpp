// SPDX-License-Identifier: Apache-2.0
//
// Creates whose answer was lost. A late copy of the request may still reach the server over an old
// connection, and would leave a node without a claim in the queue. So the lock is searched at each
// beat, until no server keeps such a connection. A leader that is cut off from its quorum keeps
// pending requests until it steps down. It may execute them when it is back. So the last search
// follows a write of this session that a majority has committed: in the log that write is behind
// all those requests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/zookeeper/lock/claim.hpp"

namespace dlock::zookeeper {

class UnresolvedCreates : public std::enable_shared_from_this<UnresolvedCreates> {
 public:
  UnresolvedCreates(Env& env, std::shared_ptr<Session> session)
      : env_(env), session_(std::move(session)) {}

  void add(const NodeClaimPtr& claim);
  /// The session is over, and all its nodes and requests with it.
  void clear() { unresolved_creates_.clear(); }
  /// Call it only while connected.
  void search();

 private:
  struct Doubt {
    std::string directory;
    std::string id;
    std::weak_ptr<NodeClaim> claim;
    TimePoint until;
  };
  void settle(const std::string& id, TimePoint searched);
  static asio::awaitable<void> search_one(std::shared_ptr<UnresolvedCreates> self, Doubt doubt);

  Env& env_;
  std::shared_ptr<Session> session_;
  std::vector<Doubt> unresolved_creates_;
};

}  // namespace dlock::zookeeper
