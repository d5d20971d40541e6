// SPDX-License-Identifier: Apache-2.0
//
// Readers: a writer that becomes one, and the renewal of claims of all kinds.
#include <array>

#include "backends/redis/backend.hpp"
#include "backends/redis/lock/readers_calls.hpp"

namespace dlock::redis {
namespace {

const Script& renew_script(const KeyClaim& claim) {
  if (claim.request().permits != 0) return scripts().renew_permits;
  return claim.may_read() ? reader_scripts().renew : scripts().renew;
}

DowngradeAnswer stepped(DowngradeStatus status, LossReason reason = LossReason::none) {
  DowngradeAnswer answer;
  answer.status = status;
  answer.reason = reason;
  return answer;
}

DowngradeAnswer not_stepped(DowngradeStatus status, Failure failure) {
  DowngradeAnswer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

}  // namespace

ScriptCall renew_reader_call(const KeyClaim& claim, std::chrono::milliseconds kept_for,
                             StepDown down) {
  ScriptCall call;
  call.keys = {claim.keys.lock(), claim.beside(kQueueKey), claim.beside(kAliveKey),
               claim.beside(kBrokenKey)};
  call.arguments = {claim.owner, Word(static_cast<std::uint64_t>(kept_for.count())),
                    Word(claim.token), down == StepDown::yes ? "1" : "0", kChannelPrefix};
  return call;
}

asio::awaitable<std::vector<ExtendAnswer>> RedisBackend::extend_mixed(std::vector<ClaimPtr> claims,
                                                                      TimePoint deadline) {
  std::vector<ExtendAnswer> answers(claims.size());
  const std::array<const Script*, 3> kinds{&scripts().renew_permits, &reader_scripts().renew,
                                           &scripts().renew};
  std::vector<const Script*> scripts_of;
  for (const auto& claim : claims) {
    scripts_of.push_back(&renew_script(static_cast<const KeyClaim&>(*claim)));
  }
  for (const auto* kind : kinds) {
    std::vector<ClaimPtr> some;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (scripts_of[i] != kind) continue;
      some.push_back(claims[i]);
      places.push_back(i);
    }
    if (some.empty()) continue;
    const auto told = co_await extend_with(*kind, std::move(some), deadline);
    for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = told[i];
  }
  co_return answers;
}

asio::awaitable<void> RedisBackend::look_for_break(std::weak_ptr<bool> alive, RedisBackend* self,
                                                   KeyClaimPtr claim) {
  if (alive.expired() || !self->link_->up()) co_return;
  const auto& script = renew_script(*claim);
  const auto call = renew_call(script, *claim, self->lock_delay_);
  const auto sent = self->env_.now();
  const auto deadline = sent + claim->request().lease / 3;
  const auto connection = self->link_->connection();
  const auto answer = co_await run_script(self->env_, connection, script, call, deadline);
  if (alive.expired() || answer.kind != ScriptAnswer::Kind::reply) co_return;
  const auto taken = self->take_renewed(*claim, answer, sent);
  const bool is_broken = taken.status == ExtendStatus::gone && taken.reason == LossReason::broken;
  if (is_broken) self->sink_.on_claim_broken(claim, taken.broken_by);
}

// From here on a renewal and a release search both forms, whatever the answer is.
asio::awaitable<DowngradeAnswer> RedisBackend::downgrade(ClaimPtr held, TimePoint deadline) {
  using Kind = ScriptAnswer::Kind;
  const auto ours = std::static_pointer_cast<KeyClaim>(held);
  const bool ready = co_await link_->ready(deadline);
  if (!ready) co_return not_stepped(DowngradeStatus::unavailable, link_->failure());
  ours->stepping_down = true;
  const auto call = renew_reader_call(*ours, ours->kept_for(lock_delay_), StepDown::yes);
  const auto sent = env_.now();
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, reader_scripts().renew, call, deadline);
  auto taken = take_renewed(*ours, answer, sent);
  switch (taken.status) {
    case ExtendStatus::extended:
      co_return stepped(DowngradeStatus::shared);
    case ExtendStatus::gone:
      co_return stepped(DowngradeStatus::gone, taken.reason);
    case ExtendStatus::unknown:
      co_return not_stepped(DowngradeStatus::unknown, std::move(taken.failure));
    case ExtendStatus::unavailable:
      break;
  }
  const bool refused = answer.kind == Kind::refused && is_permanent(answer.verdict);
  co_return not_stepped(refused ? DowngradeStatus::failed : DowngradeStatus::unavailable,
                        std::move(taken.failure));
}

}  // namespace dlock::redis
