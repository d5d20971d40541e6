// SPDX-License-Identifier: Apache-2.0
//
// The state of one claim: its node, and its place in the queue.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/zookeeper/wire/session.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

struct NodeClaim;
struct ClaimRegistry {
  /// All claims, by their numbers. They are notified when the session is over.
  std::map<std::uint64_t, NodeClaim*> all;
  /// The waiter behind each node, by the node that it waits for (its `before_path`). For a node of
  /// this process: the next waiter.
  std::unordered_map<std::string_view, NodeClaim*> behind;
};

struct NodeClaim final : Claim, std::enable_shared_from_this<NodeClaim> {
  NodeClaim(ClaimRequest request, Env& env, std::string path, std::shared_ptr<ClaimRegistry> all)
      : Claim(std::move(request)),
        directory(std::move(path)),
        signal(env),
        registry_(std::move(all)) {
    registry_->all.emplace(number(), this);
  }
  ~NodeClaim() override {
    wait_for_nobody();
    registry_->all.erase(number());
  }
  NodeClaim(const NodeClaim&) = delete;
  NodeClaim& operator=(const NodeClaim&) = delete;

  enum class Place {
    nowhere,   ///< the claim has no node in the queue
    doubtful,  ///< a create was sent and its answer lost
    queued,    ///< `node` is in the queue
    granted,   ///< `node` is first
  };

  std::string path() const { return path_of(node); }
  std::string path_of(std::string_view child) const {
    std::string path;
    path.reserve(directory.size() + 1 + child.size());
    path.append(directory).append("/").append(child);
    return path;
  }
  void wake() {
    woken = true;
    signal.notify();
  }
  void wait_for(std::unique_ptr<Session::Watch> watch, const std::string& watched) {
    wait_for_nobody();
    before = std::move(watch);
    before_path = watched;
    registry_->behind.erase(before_path);  // whose text was another claim's
    registry_->behind.emplace(before_path, this);
  }
  void wait_for_nobody() {
    before.reset();
    if (before_path.empty()) return;
    const auto entry = registry_->behind.find(before_path);
    if (entry != registry_->behind.end() && entry->second == this) registry_->behind.erase(entry);
    before_path.clear();
  }
  /// The node does not exist, or does not belong to this claim.
  void leave_queue() {
    place = Place::nowhere;
    node.clear();
    czxid = 0;
    token = 0;
    wait_for_nobody();
    ahead.reset();
    own.reset();
    own_due = kNever;
    waiting.reset();
    heir.clear();
    leases.clear();
    broken_by.reset();
    other_leases.clear();
    own_changed = own_in_doubt = before_gone = before_decides = listens = false;
  }

  const std::string directory;  ///< the lock's node
  Place place = Place::nowhere;
  std::uint64_t session = 0;  ///< the number of the session that `node` belongs to
  std::string node;
  /// While `node` becomes a reader's: that one. One of them is there, or both have gone.
  std::string heir;
  std::int64_t czxid = 0;
  std::uint64_t token = 0;  ///< once it was granted: a later raise does not change it

  std::unique_ptr<Session::Watch> before;  ///< watch of the nearest predecessor
  std::string before_path;
  bool before_gone = false;     ///< since the last listing
  bool before_decides = false;  ///< the claim is first when `before` is deleted
  /// The data of the node at `before`, requested together with this claim's node, in case it is a
  /// seal.
  std::optional<PendingReply> ahead;
  std::string ahead_path;
  std::unique_ptr<Session::Watch> own;  ///< watch of this claim's own node
  TimePoint own_due = kNever;           ///< when it is to be watched
  bool own_changed = false;
  std::unique_ptr<const std::string> broken_by;  ///< an operator has marked its node
  TimePoint unwatched_until = kNever;            ///< end of its validity while its watch is not set
  bool own_in_doubt = false;  ///< it changed: whether it still is there has been asked
  std::optional<Session::Waiting> waiting;

  std::size_t waiting_before = 0;  ///< at the last listing; for claims with `max_queue`
  std::int32_t asked_version = 0;  ///< version of its node's data when the last request was
                                   ///< reported
  /// The place in the line for permits, if `directory` has leases. Null: a lock.
  std::shared_ptr<NodeClaim> guard;
  /// This claim is such a place, for this number of permits. 0: it is not one.
  std::uint32_t guards = 0;
  std::vector<std::string> leases;  ///< once granted: all of them, `node` is the first
  /// watches of the leases after the first
  std::vector<std::unique_ptr<Session::Watch>> other_leases;
  bool counts = false;                          ///< it has the guard, and watches for fewer leases
  std::unique_ptr<Session::Watch> limit_watch;  ///< while the guard waits
  bool limit_agrees = false;  ///< whether the limit equalled the request's at its last reading

  bool read_write = false;  ///< Curator's readers or writers were in the queue at the last listing
  bool was_granted = false;
  bool listens = false;        ///< watches the lock's children for other requests
  bool entering = false;       ///< a create is on its way
  bool stepping_down = false;  ///< a downgrade is under way
  bool removing = false;       ///< a delete was sent
  bool refusal_told = false;   ///< the refusal to delete its node was reported
  bool woken = false;
  bool interrupted = false;  ///< since the last claim() began, and no wait() has ended
  Signal signal;

 private:
  std::shared_ptr<ClaimRegistry> registry_;
};

using NodeClaimPtr = std::shared_ptr<NodeClaim>;

}  // namespace dlock::zookeeper
