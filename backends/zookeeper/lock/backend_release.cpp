// SPDX-License-Identifier: Apache-2.0
//
// Releases a lock, renews it, and handles the end of the session.
#include <fmt/format.h>

#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {
namespace {

using Place = NodeClaim::Place;

/// The pause between two renewals of a claim whose own watch is not set.
constexpr std::chrono::milliseconds kUnwatchedPause{250};

ReleaseAnswer answer_of(ReleaseStatus status) {
  ReleaseAnswer answer;
  answer.status = status;
  return answer;
}

}  // namespace

asio::awaitable<ReleaseAnswer> ZooKeeperBackend::release(ClaimPtr claim, bool search,
                                                         TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(claim);
  if (ours->guard) co_return co_await release_permits(ours, search, deadline);
  // A node that had gone before we asked to delete it was taken from us.
  const auto gone =
      ours->was_granted && !ours->removing ? ReleaseStatus::not_holder : ReleaseStatus::released;
  const bool doubtful = ours->place == Place::doubtful;
  while (!closed_) {
    // A session that is over has taken its nodes with it, and none can arrive any more.
    if (ours->session != session_->number()) {
      ours->leave_queue();
      co_return answer_of(gone);
    }
    if (ours->node.empty() && !doubtful && !search) co_return answer_of(gone);
    bool ready = session_->is_ready(deadline);
    if (!ready) ready = co_await session_->ready(deadline);
    if (!ready) break;
    if (!usable(*ours)) continue;
    Gate::Pass pass(releasing_, ours->was_granted, ours->signal);
    while (!pass.inside() && !closed_ && env_.now() < deadline) {
      co_await ours->signal.wait_until(deadline);
    }
    if (!pass.inside()) break;
    if (!usable(*ours)) continue;
    int rc = ZNONODE;
    if (!ours->node.empty()) rc = co_await remove_own(ours, deadline);
    if (!is_loss(rc) && (search || doubtful)) {
      const int searched = co_await remove_copies(ours, deadline);
      if (is_loss(searched)) rc = searched;
    }
    if (rc != ZOK && rc != ZNONODE && !is_loss(rc)) {
      auto refused = answer_of(rc == ZNOAUTH ? ReleaseStatus::refused : ReleaseStatus::unavailable);
      refused.failure = failure_of(rc, "deleting " + ours->path());
      // The node was not deleted: it keeps its state, and its deletion will be noticed.
      ours->removing = false;
      tell_refused(*ours, refused.failure);
      co_return refused;
    }
    if (!is_loss(rc)) {
      ours->leave_queue();
      co_return answer_of(rc == ZOK ? ReleaseStatus::released : gone);
    }
    if (env_.now() >= deadline) break;
  }
  auto answer = answer_of(ReleaseStatus::released);  // closing the session frees it
  if (!closed_) {
    answer.status = ours->removing ? ReleaseStatus::unknown : ReleaseStatus::unavailable;
    answer.failure.error = session_->connected() ? Error::no_answer : Error::not_connected;
  }
  co_return answer;
}

/// Once for a claim, though the core tries again. The code alone does not say which node it was.
void ZooKeeperBackend::tell_refused(NodeClaim& claim, const Failure& why) {
  if (std::exchange(claim.refusal_told, true)) return;
  sink_.on_warning(fmt::format(
      "{} ({}). The lock of '{}' stays taken until the node may be deleted, or our session ends",
      why.text, why.error.message(), claim.request().name));
}

asio::awaitable<int> ZooKeeperBackend::remove_own(NodeClaimPtr claim, TimePoint deadline) {
  const bool again = claim->removing;
  claim->removing = true;
  claim->own.reset();
  claim->wait_for_nobody();
  // In its order: what was to replace the node was sent before.
  const auto pending = session_->client().remove(claim->path());
  if (!claim->heir.empty()) {
    const auto heir = session_->client().remove(claim->path_of(claim->heir));
    const auto inherited = in_time(co_await heir.get_until(deadline));
    if (inherited.rc == ZOK || is_loss(inherited.rc)) co_return inherited.rc;
  }
  const auto reply = in_time(co_await pending.get_until(deadline));
  if (reply.rc == ZOK) undisturbed_.removed(claim->directory, claim->czxid);
  // An earlier delete without an answer did it.
  if (reply.rc == ZNONODE && again) co_return ZOK;
  if (reply.rc == ZNONODE) claim->removing = false;
  co_return reply.rc;
}

asio::awaitable<int> ZooKeeperBackend::remove_copies(NodeClaimPtr claim, TimePoint deadline) {
  if (!usable(*claim)) co_return ZCONNECTIONLOSS;
  const auto listing = co_await fresh_children(claim->directory, true, deadline);
  if (listing.rc == ZNONODE) co_return ZOK;
  if (listing.rc != ZOK) co_return listing.rc;
  std::vector<PendingReply> pending;
  if (!usable(*claim)) co_return ZCONNECTIONLOSS;
  for (const auto& copy : copies_of(claim->request().owner.id, listing.children)) {
    pending.push_back(session_->client().remove(claim->directory + "/" + copy));
  }
  int rc = ZOK;
  for (auto& one : pending) {
    const auto reply = co_await reply_until(one, deadline);
    if (is_loss(reply.rc)) rc = reply.rc;
  }
  co_return rc;
}

asio::awaitable<std::vector<ExtendAnswer>> ZooKeeperBackend::extend(std::vector<ClaimPtr> claims,
                                                                    TimePoint deadline) {
  std::vector<ExtendAnswer> answers(claims.size());
  std::vector<bool> watched(claims.size());
  bool proven = false;
  bool sent = false;
  while (!proven && !closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    sent = true;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      watched[i] = session_->watching(static_cast<const NodeClaim&>(*claims[i]).path());
    }
    const auto reply = co_await session_->prove(deadline);
    proven = reply.rc == ZOK || reply.rc == ZNONODE;
    if (env_.now() >= deadline) break;
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto ours = std::static_pointer_cast<NodeClaim>(claims[i]);
    auto& answer = answers[i];
    // Whose downgrade is over without an answer: which of its nodes is it?
    if (!ours->heir.empty() && !ours->stepping_down && proven && usable(*ours)) {
      co_await find_heir(ours, deadline);
    }
    if (ours->session != session_->number()) {
      answer.status = ExtendStatus::gone;
      answer.reason = LossReason::session_ended;
    } else if (ours->place != Place::granted) {
      answer.status = ExtendStatus::gone;
      answer.reason = LossReason::removed;
    } else if (ours->broken_by) {
      answer.status = ExtendStatus::gone;
      answer.reason = LossReason::broken;
      answer.broken_by = *ours->broken_by;
    } else if (proven) {
      // Else an operator's mark may be older than the proof. The next renewal knows.
      const bool is_unmarked = watched[i] && session_->watching(ours->path()) && !ours->own_changed;
      if (is_unmarked) {
        // The proof was sent at most two thirds of a session before `until`. A mark is newer than
        // the proof, and its breaker waits for a whole session. One twelfth remains for clocks of
        // different rates.
        ours->unwatched_until = session_->validity().until + session_->timeout() / 4;
      }
      if (ours->own_changed && !ours->own_in_doubt) look_at_own_data(ours);
      // Its answer was lost when the permits had been granted.
      const bool blocks_others = ours->guard && ours->guard->place != Place::nowhere;
      if (blocks_others) co_await release(ours->guard, true, deadline);
      watch_own_node(ours);
      listen_for_others(ours);
      answer.status = ExtendStatus::extended;
      answer.validity = session_->validity();
      answer.validity.until = std::min(answer.validity.until, ours->unwatched_until);
      // The session sets many watches in turn after a reconnect.
      if (!is_unmarked && !ours->own_changed && ours->own) {
        answer.validity.renew_at = std::min(answer.validity.renew_at, env_.now() + kUnwatchedPause);
      }
    } else {
      answer.status = sent ? ExtendStatus::unknown : ExtendStatus::unavailable;
      answer.failure.error = session_->connected() ? Error::no_answer : Error::not_connected;
    }
  }
  co_return answers;
}

asio::awaitable<void> ZooKeeperBackend::close(TimePoint deadline) {
  closed_ = true;
  for (const auto& [number, claim] : claims_->all) claim->wake();
  co_await session_->close(deadline, keeps_session_);
  on_session_over();
}

// Closing the session deletes all its nodes at once.
Job ZooKeeperBackend::leave_behind(ClaimPtr /*claim*/) {
  keeps_session_ = true;
  return {};
}

}  // namespace dlock::zookeeper
