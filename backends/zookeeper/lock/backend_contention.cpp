// SPDX-License-Identifier: Apache-2.0
//
// Notifies a holder that another client asks for its lock. Such a client creates a node beside the
// holder's, so the holder watches the children of the lock's node. Each grant that listens costs
// one request; other grants cost nothing. Any new or deleted child counts: finding out which one it
// was would cost the other client a round trip.
#include <utility>

#include "backends/zookeeper/backend.hpp"

#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

/// Without a connection the next renewal does it.
void ZooKeeperBackend::listen_for_others(const NodeClaimPtr& claim) {
  if (!claim->request().tell_contention || claim->listens || !usable(*claim)) return;
  listening_[claim->directory] = claim;
  auto asked = session_->client().children_and_watch(claim->directory);
  claim->listens = true;  // before what may find at once that it does not
  spawn(env_, hear_others(alive_, this, claim, std::move(asked)));
}

// The reply lists the clients that were queued before the watch was set.
asio::awaitable<void> ZooKeeperBackend::hear_others(std::weak_ptr<bool> alive,
                                                    ZooKeeperBackend* self, NodeClaimPtr claim,
                                                    PendingReply asked) {
  const auto reply = co_await reply_until(std::move(asked), kNever);
  if (alive.expired() || claim->place != NodeClaim::Place::granted) co_return;
  if (reply.rc != ZOK) {
    claim->listens = false;
    co_return;
  }
  for (const auto& child : reply.children) {
    if (child == claim->node) continue;
    self->sink_.on_contended(claim);
    co_return;
  }
}

void ZooKeeperBackend::on_children(const std::string& directory) {
  if (const auto counting = counting_.extract(directory)) {
    if (const auto first = counting.mapped().lock()) first->wake();
    return;
  }
  if (!observed_.empty()) {
    if (const auto name = names_.name(directory)) on_watched(*name, WatchEvent::children);
  }
  const auto found = listening_.find(directory);
  if (found == listening_.end()) return;
  const auto claim = found->second.lock();
  listening_.erase(found);
  const bool is_held = claim && claim->place == NodeClaim::Place::granted && !claim->removing;
  if (is_held) sink_.on_contended(claim);
}

/// Called when the connection is lost. The next renewal finds the clients that ask until then.
void ZooKeeperBackend::stop_listening() {
  for (const auto& [directory, listener] : listening_) {
    session_->client().forget_children(directory);
    if (const auto claim = listener.lock()) claim->listens = false;
  }
  listening_.clear();
  for (const auto& [directory, counting] : counting_) {
    session_->client().forget_children(directory);
    if (const auto first = counting.lock()) first->wake();
  }
  counting_.clear();
  for (const auto& [name, observed] : observed_) {
    const bool listed = std::exchange(observed->by_children, false);
    if (listed) session_->client().forget_children(names_.path(name));
  }
}

}  // namespace dlock::zookeeper
