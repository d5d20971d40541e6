// SPDX-License-Identifier: Apache-2.0
//
// Downgrades a writer to a reader. One transaction replaces the writer's node by a reader's node
// with the same number. So every listing has one of them, and the token stays. Waiters see a change
// of the writer's node, not a deletion: a waiter behind a deleted mutex would acquire the lock
// without another listing.
#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::zookeeper {
namespace {

using Place = NodeClaim::Place;

DowngradeAnswer downgrade_is(DowngradeStatus status, LossReason reason = LossReason::none) {
  DowngradeAnswer answer;
  answer.status = status;
  answer.reason = reason;
  return answer;
}

}  // namespace

asio::awaitable<DowngradeAnswer> ZooKeeperBackend::downgrade(ClaimPtr held, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(held);
  struct Under {
    explicit Under(NodeClaimPtr of) : claim(std::move(of)) { claim->stepping_down = true; }
    ~Under() { claim->stepping_down = false; }
    NodeClaimPtr claim;
  } const under(ours);
  bool sent = false;
  while (is_ours(*ours) && !closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    if (usable(*ours) && is_ours(*ours)) {
      auto answer = co_await step_down(ours, sent, deadline);
      if (answer) co_return std::move(*answer);
    }
    if (env_.now() >= deadline) break;
  }
  if (ours->session != session_->number()) {
    co_return downgrade_is(DowngradeStatus::gone, LossReason::session_ended);
  }
  if (!is_ours(*ours)) co_return downgrade_is(DowngradeStatus::gone, LossReason::removed);
  auto answer = downgrade_is(sent ? DowngradeStatus::unknown : DowngradeStatus::unavailable);
  answer.failure.error = session_->connected() ? Error::no_answer : Error::not_connected;
  co_return answer;
}

bool ZooKeeperBackend::is_ours(const NodeClaim& claim) const {
  return claim.place == Place::granted && claim.session == session_->number();
}

/// Empty: check the claim's state again.
asio::awaitable<std::optional<DowngradeAnswer>> ZooKeeperBackend::step_down(NodeClaimPtr claim,
                                                                            bool& sent,
                                                                            TimePoint deadline) {
  if (!claim->heir.empty()) {
    const auto found = co_await find_heir(claim, deadline);
    if (found == DowngradeStatus::shared) co_return downgrade_is(DowngradeStatus::shared);
    co_return std::nullopt;
  }
  const auto heir = stepped_down(claim->request().owner.id, claim->node);
  if (heir.empty()) {
    auto refused = downgrade_is(DowngradeStatus::failed);
    refused.failure = {make_error_code(errc::not_supported),
                       "the lock's counter is near its end: release it and acquire it again"};
    co_return refused;
  }
  // It was found out meanwhile.
  if (heir == claim->node) co_return downgrade_is(DowngradeStatus::shared);
  const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(session_->timeout());
  Metadata metadata{claim->request().owner, lease, claim->czxid};
  metadata.breakable = true;
  const auto text = write_metadata(metadata);
  claim->heir = heir;
  claim->own.reset();
  sent = true;
  auto pending =
      session_->client().mark_and_replace(claim->path(), "dlock: a reader from now on",
                                          claim->path_of(heir), text, Client::Mode::ephemeral);
  const auto reply = co_await reply_until(std::move(pending), deadline);
  // Without an answer, or without the node: the existing nodes show the outcome.
  if (!is_ours(*claim) || is_loss(reply.rc) || reply.rc == ZNONODE) co_return std::nullopt;
  if (reply.rc == ZOK) {
    become_heir(claim);
    co_return downgrade_is(DowngradeStatus::shared);
  }
  claim->heir.clear();
  watch_own_node(claim);
  auto refused = downgrade_is(DowngradeStatus::failed);
  refused.failure = failure_of(reply.rc, "replacing " + claim->path());
  co_return refused;
}

// After a write of this session: what was sent before has been done by then, or never will be.
asio::awaitable<std::optional<DowngradeStatus>> ZooKeeperBackend::find_heir(NodeClaimPtr claim,
                                                                            TimePoint deadline) {
  const auto listing = co_await fresh_children(claim->directory, true, deadline);
  const bool is_known = listing.rc == ZOK || listing.rc == ZNONODE;
  if (!is_known || claim->heir.empty()) co_return std::nullopt;
  const auto& there = listing.children;
  if (std::find(there.begin(), there.end(), claim->heir) != there.end()) {
    become_heir(claim);
    co_return DowngradeStatus::shared;
  }
  if (std::find(there.begin(), there.end(), claim->node) != there.end()) {
    claim->heir.clear();
    watch_own_node(claim);
    co_return DowngradeStatus::unavailable;
  }
  claim->leave_queue();
  co_return DowngradeStatus::gone;
}

void ZooKeeperBackend::become_heir(const NodeClaimPtr& claim) {
  claim->node = std::exchange(claim->heir, {});
  claim->own.reset();
  claim->own_changed = claim->own_in_doubt = false;
  watch_own_node(claim);
}

}  // namespace dlock::zookeeper
