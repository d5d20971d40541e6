// SPDX-License-Identifier: Apache-2.0
//
// Notifies a holder that another client asks for its lock. The acquire script finds the holder's
// instance in the lock's value and publishes on the channel on which waiters are notified. Requests
// from before the grant, or from a time without a subscription, are counted: after the grant, at
// each renewal and at each new subscription.
#include "backends/redis/backend.hpp"

#include "dlock/spi/signal.hpp"

namespace dlock::redis {
namespace {

bool wants_to_hear(const KeyClaim& claim) {
  return claim.request().tell_contention || claim.request().tell_asked;
}

}  // namespace

/// Called for a claim that was granted or renewed.
void RedisBackend::listen_for_others(const KeyClaimPtr& claim) {
  if (!wants_to_hear(*claim) || closed_) return;
  subscriber_->want();
  listening_[claim->request().owner.id] = claim;
  listen_for_askings(claim);
  if (!claim->request().tell_contention) return;
  spawn(env_, look_for_others(alive_, this, claim));
}

void RedisBackend::stop_listening(const KeyClaim& claim) noexcept {
  if (wants_to_hear(claim)) listening_.erase(claim.request().owner.id);
}

asio::awaitable<void> RedisBackend::look_for_others(std::weak_ptr<bool> alive, RedisBackend* self,
                                                    KeyClaimPtr claim) {
  if (alive.expired() || !self->link_->up()) co_return;
  ScriptCall call;
  call.keys = {claim->beside(kQueueKey)};
  const auto deadline = self->env_.now() + claim->request().lease / 3;
  const auto connection = self->link_->connection();
  const auto answer = co_await run_script(self->env_, connection, scripts().asked, call, deadline);
  if (alive.expired() || answer.kind != ScriptAnswer::Kind::reply) co_return;
  if (answer.code() > 0) self->sink_.on_contended(claim);
}

void RedisBackend::look_for_others_of_all() {
  const auto all = listening_;
  for (const auto& [id, listener] : all) {
    if (const auto claim = listener.lock()) listen_for_others(claim);
  }
}

/// Renews the claim: the answer shows whether it is broken, and names the operator.
void RedisBackend::hear_of_break(const std::string& owner_id) {
  const auto found = listening_.find(owner_id);
  const auto claim = found == listening_.end() ? nullptr : found->second.lock();
  if (!claim || closed_) return;
  spawn(env_, look_for_break(alive_, this, claim));
}

/// Ignores an owner that is not listening.
void RedisBackend::hear(const std::string& owner_id) {
  const auto found = listening_.find(owner_id);
  if (found == listening_.end()) return;
  if (const auto claim = found->second.lock()) {
    listen_for_askings(claim);
    if (claim->request().tell_contention) sink_.on_contended(claim);
  } else {
    listening_.erase(found);
  }
}

}  // namespace dlock::redis
