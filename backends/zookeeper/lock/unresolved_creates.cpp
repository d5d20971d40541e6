// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/lock/unresolved_creates.hpp"

#include <algorithm>

#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

// A server closes a connection that was silent for a session's timeout. It checks once per tick,
// and a session has at least three ticks.
void UnresolvedCreates::add(const NodeClaimPtr& claim) {
  const auto until = env_.now() + 2 * session_->timeout();
  const auto known =
      std::find_if(unresolved_creates_.begin(), unresolved_creates_.end(),
                   [&](const Doubt& doubt) { return doubt.id == claim->request().owner.id; });
  if (known != unresolved_creates_.end()) {
    known->until = until;
  } else {
    unresolved_creates_.push_back({claim->directory, claim->request().owner.id, claim, until});
  }
}

void UnresolvedCreates::search() {
  for (const auto& doubt : unresolved_creates_) {
    spawn(env_, search_one(shared_from_this(), doubt));
  }
}

void UnresolvedCreates::settle(const std::string& id, TimePoint searched) {
  std::erase_if(unresolved_creates_,
                [&](const Doubt& doubt) { return doubt.id == id && doubt.until <= searched; });
}

asio::awaitable<void> UnresolvedCreates::search_one(std::shared_ptr<UnresolvedCreates> self,
                                                    Doubt doubt) {
  auto& session = *self->session_;
  if (!session.connected()) co_return;
  const auto number = session.number();
  const auto began = self->env_.now();
  const auto deadline = began + session.timeout() / 4;
  const auto proof = co_await session.prove(deadline);
  const bool proven = !is_loss(proof.rc);
  if (!session.connected() || session.number() != number) co_return;
  auto pending = session.client().children(doubt.directory);
  const auto listing = co_await reply_until(std::move(pending), deadline);
  if (is_loss(listing.rc) || !session.connected() || session.number() != number) co_return;
  const auto claim = doubt.claim.lock();
  // The claim itself is finding out.
  if (claim && (claim->entering || claim->place == NodeClaim::Place::doubtful)) co_return;
  bool clean = true;
  for (const auto& copy : copies_of(doubt.id, listing.children)) {
    if (claim && (claim->node == copy || claim->heir == copy)) continue;
    clean = false;
    session.client().remove(doubt.directory + "/" + copy);
  }
  if (proven && clean) self->settle(doubt.id, began);
}

}  // namespace dlock::zookeeper
