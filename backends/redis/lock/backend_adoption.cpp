// SPDX-License-Identifier: Apache-2.0
//
// A grant that is exported, and one that is adopted.
#include <fmt/format.h>

#include <algorithm>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/value.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::redis {
namespace {

Word in_ms(std::chrono::milliseconds time) {
  return Word(static_cast<std::uint64_t>(time.count()));
}

ClaimAnswer refused_adoption(const KeyClaim& claim, const std::string& there) {
  ClaimAnswer answer;
  answer.status = ClaimStatus::failed;
  std::optional<std::uint64_t> holder;
  if (!there.empty()) holder = read_value(there).token.value_or(0);
  answer.failure = not_adoptable(holder, claim.request().adoption->token);
  return answer;
}

}  // namespace

asio::awaitable<Failure> RedisBackend::offer(ClaimPtr held, std::string proof,
                                             std::chrono::milliseconds within, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<KeyClaim>(held);
  const bool ready = co_await link_->ready(deadline);
  if (!ready) co_return link_->failure();
  const auto value = fmt::format("{}:{}", ours->token, ours->owner);
  ScriptCall call;
  call.keys = {ours->keys.lock(), ours->beside(kGrantKey), ours->beside(kAliveKey)};
  call.arguments = {value, proof, in_ms(within)};
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, scripts().offer, call, deadline);
  if (answer.kind == ScriptAnswer::Kind::refused && answer.verdict.error == Error::foreign_format) {
    co_return make_failure(errc::not_holder, answer.failure.text);
  }
  if (answer.kind == ScriptAnswer::Kind::unknown) {
    co_return make_failure(errc::unavailable, answer.failure.text);
  }
  if (answer.kind != ScriptAnswer::Kind::reply) co_return answer.failure;
  if (answer.code() == 1) co_return Failure{};
  // An operator may have marked the record to break it. The holder releases that itself.
  std::vector<ClaimPtr> offered(1, ours);
  const auto renewed = co_await extend(std::move(offered), deadline);
  if (renewed.front().reason == LossReason::broken) {
    sink_.on_claim_broken(ours, renewed.front().broken_by);
  }
  co_return make_failure(errc::not_holder, "the server does not know the grant any more");
}

// A copy that arrives late finds another value there, and does nothing.
asio::awaitable<ClaimAnswer> RedisBackend::adopt(KeyClaimPtr claim, TimePoint deadline) {
  const auto& request = claim->request();
  const auto kept = claim->kept_for(lock_delay_);
  const auto fence = std::max<std::chrono::milliseconds>(kFenceMemory, 2 * kept);
  const auto exported = fmt::format("{}:{},", request.adoption->token, request.adoption->owner_id);
  ScriptCall call;
  call.keys = {claim->keys.lock(), claim->beside(kFenceKey), claim->beside(kGrantKey),
               claim->beside(kAliveKey)};
  call.arguments = {claim->owner,
                    in_ms(kept),
                    Word(request.min_token),
                    in_ms(fence),
                    exported,
                    request.adoption->proof,
                    Word(server_clock_.at(deadline))};
  const auto sent = env_.now();
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, scripts().adopt, call, deadline);
  if (was_late(*claim, answer, sent)) co_return co_await adopt(std::move(claim), deadline);
  const bool is_refused = answer.kind == ScriptAnswer::Kind::reply && answer.items.size() == 2 &&
                          answer.code() == static_cast<int>(AcquireCode::busy);
  if (is_refused) co_return refused_adoption(*claim, answer.items[1].text);
  auto taken = take_acquired(*claim, answer, sent);
  if (taken.status == ClaimStatus::granted) listen_for_others(claim);
  co_return taken;
}

}  // namespace dlock::redis
