// SPDX-License-Identifier: Apache-2.0
//
// The notifications of a claim: its predecessor was deleted, or its own node changed.
#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {
namespace {

/// How long a lock is held before its own node is watched. Short holds never pay for the watch.
constexpr std::chrono::milliseconds kOwnWatchDelay{200};
/// How often the first waiter for permits counts the leases again.
constexpr std::chrono::milliseconds kCountAgain{500};

}  // namespace

void ZooKeeperBackend::watch_before(const NodeClaimPtr& claim, const std::string& path,
                                    bool decides) {
  const std::weak_ptr<NodeClaim> weak = claim;
  claim->before_gone = false;
  claim->before_decides = decides;
  auto watch = session_->watch(path, [weak](WatchEvent event) {
    const auto waiter = weak.lock();
    if (!waiter || is_set(event)) return;
    // The outcome is known only for a deletion of a watched node. A node that changed, or was
    // deleted before the watch, may have left a seal in its place.
    if (event != WatchEvent::deleted) waiter->before_decides = false;
    waiter->before_gone = true;
    waiter->wake();
  });
  claim->wait_for(std::move(watch), path);
  claim->woken = false;
}

// The waiter behind a node of this process that was just granted knows that this node was first, as
// from its own listing. Otherwise six thousand waiters of one process would list each other six
// thousand times. This is not used if the waiter's own node may be gone since its last listing.
void ZooKeeperBackend::tell_next(const NodeClaim& granted) {
  if (claims_->behind.empty()) return;
  const auto entry = claims_->behind.find(granted.path());
  if (entry == claims_->behind.end()) return;
  auto& next = *entry->second;
  const bool waits = next.place == NodeClaim::Place::queued && usable(next) && !next.before_gone;
  if (!waits || !session_->watching(next.path())) return;
  const auto contender = parse_contender(granted.node);
  if (contender && contender->kind == Contender::Kind::mutex) next.before_decides = true;
}

void ZooKeeperBackend::share_own_watch(const NodeClaimPtr& claim) {
  const std::weak_ptr<NodeClaim> weak = claim;
  const auto told = [this, weak, alive = std::weak_ptr(alive_)](WatchEvent event) {
    const auto ours = weak.lock();
    if (ours && !alive.expired()) on_own_node(ours, event);
  };
  claim->own = session_->watch(claim->path(), told);
  for (std::size_t i = 1; i < claim->leases.size(); ++i) {
    claim->other_leases.push_back(session_->watch(claim->path_of(claim->leases[i]), told));
  }
}

/// Called for a held lock.
void ZooKeeperBackend::watch_own_node(const NodeClaimPtr& claim) {
  if (claim->place != NodeClaim::Place::granted || claim->own || !claim->heir.empty()) return;
  if (claim->session != session_->number()) return;
  share_own_watch(claim);
  session_->set_watch_in_turn(claim->path());
  for (std::size_t i = 1; i < claim->leases.size(); ++i) {
    session_->set_watch_in_turn(claim->path_of(claim->leases[i]));
  }
}

void ZooKeeperBackend::watch_own_node_later(NodeClaim& claim) {
  claim.own_due = env_.now() + kOwnWatchDelay;
  arm_own_watches(claim.own_due);
}

/// One timer for all claims: most are released before it ends.
void ZooKeeperBackend::arm_own_watches(TimePoint when) {
  if (own_watches_ != 0) return;
  own_watches_ = env_.call_at(when, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    own_watches_ = 0;
    watch_own_nodes();
  });
}

void ZooKeeperBackend::watch_own_nodes() {
  auto next = kNever;
  for (const auto& [number, claim] : claims_->all) {
    if (claim->own_due <= env_.now()) {
      claim->own_due = kNever;
      watch_own_node(claim->shared_from_this());
    }
    next = std::min(next, claim->own_due);
  }
  if (next != kNever) arm_own_watches(next);
}

/// Before anything is asked that may make it our turn.
void ZooKeeperBackend::be_sure_of_own_watch(const NodeClaimPtr& claim) {
  if (!claim->own) share_own_watch(claim);
  if (!session_->watching(claim->path())) session_->set_watch(claim->path());
}

void ZooKeeperBackend::on_own_node(const NodeClaimPtr& claim, WatchEvent event) {
  if (is_set(event)) claim->own_in_doubt = false;
  if (claim->removing || event == WatchEvent::set || event == WatchEvent::failed) return;
  // Before the watch was set, or after a lost connection, the change itself is not seen.
  if (event == WatchEvent::changed || event == WatchEvent::written) {
    const bool is_watched = event == WatchEvent::written;
    claim->own_changed = true;
    claim->own_in_doubt = !is_watched;
    if (!is_watched) session_->set_watch(claim->path());
    look_at_own_data(claim);
    return;
  }
  const bool granted = claim->place == NodeClaim::Place::granted;
  // An operator's break marks the node in the transaction that deletes it.
  const auto why = claim->own_changed ? LossReason::broken : LossReason::removed;
  claim->leave_queue();
  if (granted && claim->guards == 0) {
    sink_.on_claim_gone(claim, why);
  } else {
    claim->wake();
  }
}

asio::awaitable<void> ZooKeeperBackend::wait(ClaimPtr claim, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(claim);
  if (ours->guard && ours->guard->place != NodeClaim::Place::granted) {
    co_return co_await wait(ours->guard, deadline);
  }
  // Counting again finds a lost watch and a changed limit.
  if (ours->guard) deadline = std::min(deadline, env_.now() + kCountAgain);
  // Interrupted, maybe, while its last listing was under way, and the watch that it led to was set.
  while (!ours->woken && !ours->interrupted && !closed_) {
    if (const bool done = co_await ours->signal.wait_until(deadline); !done) break;
  }
  ours->woken = ours->interrupted = false;
}

void ZooKeeperBackend::interrupt(Claim& claim) noexcept {
  auto& ours = static_cast<NodeClaim&>(claim);
  ours.interrupted = true;
  ours.wake();
  if (ours.guard) interrupt(*ours.guard);
}

}  // namespace dlock::zookeeper
