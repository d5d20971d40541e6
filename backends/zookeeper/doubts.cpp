// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/doubts.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "backends/zookeeper/contender.hpp"
#include "core/planted.hpp"

namespace dlock::zookeeper {

// A server closes a connection that was silent for a session's time, and looks once a tick, of
// which a session has three at least.
void Doubts::add(const NodeClaimPtr& claim) {
  if (DLOCK_PLANTED("zk_late_copies_forgotten")) return;
  const auto until = env_.now() + 2 * session_->timeout();
  const auto known = std::find_if(doubts_.begin(), doubts_.end(), [&](const Doubt& doubt) {
    return doubt.id == claim->request().owner.id;
  });
  if (known != doubts_.end()) {
    known->until = until;
  } else {
    doubts_.push_back({claim->directory, claim->request().owner.id, claim, until});
  }
}

void Doubts::search() {
  for (const auto& doubt : doubts_) {
    asio::co_spawn(env_.executor(), search_one(shared_from_this(), doubt), asio::detached);
  }
  // Those whose time has come were searched once more just now.
  const auto now = env_.now();
  std::erase_if(doubts_, [now](const Doubt& doubt) { return doubt.until <= now; });
}

asio::awaitable<void> Doubts::search_one(std::shared_ptr<Doubts> self, Doubt doubt) {
  auto& session = *self->session_;
  if (!session.connected()) co_return;
  const auto number = session.number();
  auto pending = session.client().children(doubt.directory);
  const auto listing =
      co_await reply_until(std::move(pending), self->env_.now() + session.timeout() / 4);
  if (listing.rc != ZOK || !session.connected() || session.number() != number) co_return;
  const auto claim = doubt.claim.lock();
  // The claim is finding out by itself.
  if (claim && (claim->entering || claim->place == NodeClaim::Place::doubtful)) co_return;
  for (const auto& copy : copies_of(doubt.id, listing.children)) {
    if (claim && claim->node == copy) continue;
    session.client().remove(doubt.directory + "/" + copy);
  }
}

}  // namespace dlock::zookeeper
