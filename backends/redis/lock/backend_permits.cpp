// SPDX-License-Identifier: Apache-2.0
//
// Semaphores: what is sent for permits beside what locks have, and what the answers mean.
#include <algorithm>
#include <charconv>

#include "backends/redis/backend.hpp"
#include "backends/redis/lock/permits_calls.hpp"
#include "backends/redis/rules/permits.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

Word number(milliseconds time) { return Word(static_cast<std::uint64_t>(time.count())); }

ClaimAnswer failed_claim(Failure failure) {
  ClaimAnswer answer;
  answer.status = ClaimStatus::failed;
  answer.failure = std::move(failure);
  return answer;
}

Failure foreign_text(const std::string& key) {
  return {Error::foreign_format, "the key '" + key + "' has another program's text"};
}

Failure refused_limit(const ClaimRequest& request, std::int64_t stored) {
  if (stored <= 0) return unknown_semaphore(request.name);
  const auto limit = static_cast<std::uint32_t>(stored);
  if (request.limit != 0 && request.limit != limit) {
    return wrong_limit(request.name, request.limit, limit);
  }
  return too_many_permits(request.name, request.permits, limit);
}

}  // namespace

ScriptCall acquire_permits_call(const KeyClaim& claim, milliseconds poll, milliseconds lock_delay,
                                std::uint64_t until) {
  const auto& request = claim.request();
  ScriptCall call;
  call.keys = {claim.beside(kPermitsKey)};
  call.arguments = {claim.owner,
                    Word(std::uint64_t{request.permits}),
                    Word(std::uint64_t{request.limit}),
                    number(claim.kept_for(lock_delay)),
                    Word(request.min_token),
                    request.queue ? "1" : "0",
                    claim.waiter,
                    number(waiter_patience(poll)),
                    kChannelPrefix,
                    number(near_patience(poll)),
                    std::string_view(claim.arrival),
                    Word(until)};
  return call;
}

ScriptCall renew_permits_call(const KeyClaim& claim, milliseconds lock_delay) {
  ScriptCall call;
  call.keys = {claim.beside(kPermitsKey)};
  call.arguments = {claim.owner, number(claim.kept_for(lock_delay)), Word(claim.token)};
  return call;
}

ScriptCall release_permits_call(const KeyClaim& claim) {
  ScriptCall call;
  call.keys = {claim.beside(kPermitsKey)};
  call.arguments = {claim.owner, kChannelPrefix};
  return call;
}

asio::awaitable<ClaimAnswer> RedisBackend::claim_permits(KeyClaimPtr claim, TimePoint deadline) {
  const auto call = acquire_permits_call(*claim, poll_, lock_delay_, server_clock_.at(deadline));
  if (claim->request().queue) claim->maybe_queued = true;
  const auto sent = env_.now();
  const auto connection = link_->connection();
  const auto answer =
      co_await run_script(env_, connection, scripts().acquire_permits, call, deadline);
  if (was_late(*claim, answer, sent)) co_return co_await claim_permits(std::move(claim), deadline);
  co_return take_permits(*claim, answer, sent);
}

ClaimAnswer RedisBackend::take_permits(KeyClaim& claim, const ScriptAnswer& answer,
                                       TimePoint sent) {
  const bool replied = answer.kind == ScriptAnswer::Kind::reply;
  const auto code = replied ? static_cast<AcquireCode>(answer.code()) : AcquireCode::busy;
  if (code == AcquireCode::other_limit && answer.items.size() == 2) {
    claim.maybe_queued = false;
    return failed_claim(refused_limit(claim.request(), answer.items[1].integer));
  }
  if (code == AcquireCode::foreign) {
    return failed_claim(foreign_text(claim.beside(kPermitsKey).text()));
  }
  return take_acquired(claim, answer, sent);
}

asio::awaitable<Result<SemaphoreStatus>> RedisBackend::inspect_semaphore(std::string name,
                                                                         TimePoint deadline) {
  Result<SemaphoreStatus> result;
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    result.failure = link_->failure();
    co_return result;
  }
  const auto keys = names_.base(name);
  ScriptCall call;
  call.keys = {Word(keys.text, kPermitsKey)};
  const auto connection = link_->connection();
  const auto answer =
      co_await run_script(env_, connection, scripts().inspect_permits, call, deadline);
  if (answer.kind != ScriptAnswer::Kind::reply) {
    result.failure = answer.failure;
    co_return result;
  }
  if (answer.items.size() != 2) {
    result.failure = {Error::unexpected, "an answer of another form"};
    co_return result;
  }
  const auto& time = answer.items[1].text;
  std::int64_t now = 0;
  std::from_chars(time.data(), time.data() + time.size(), now);
  const auto& record = answer.items[0].text;
  const auto key = call.keys[0].text();
  result.value = read_permits(std::move(name), record, now, lock_delay_);
  if (result.value) co_return result;
  auto newer = newer_format(key, record, kPermitsStamp, kFormat);
  const bool is_newer = !newer.empty();
  result.failure = is_newer ? Failure{Error::newer_format, std::move(newer)} : foreign_text(key);
  co_return result;
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> RedisBackend::list_semaphores(
    std::string prefix, TimePoint deadline) {
  Result<std::vector<SemaphoreStatus>> result;
  auto names = co_await scan(std::move(prefix), std::string(kPermitsKey), deadline);
  result.failure = std::move(names.failure);
  if (!names.value) co_return result;
  std::vector<SemaphoreStatus> found;
  for (const auto& name : *names.value) {
    auto status = co_await inspect_semaphore(name, deadline);
    if (status.failure.error == Error::foreign_format) continue;
    const auto error = portable(status.failure.error);
    if (!status.value && (error == errc::access_denied || error == errc::newer_format)) {
      if (!result.failure.error) result.failure = std::move(status.failure);
      continue;
    }
    if (!status.value) {
      result.failure = std::move(status.failure);
      co_return result;
    }
    if (status.value->limit) found.push_back(std::move(*status.value));
  }
  result.value = std::move(found);
  co_return result;
}

asio::awaitable<EvictAnswer> RedisBackend::evict_permits(EvictRequest request, TimePoint deadline) {
  EvictAnswer result;
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    result.failure = link_->failure();
    co_return result;
  }
  const auto keys = names_.base(request.name);
  const auto mark = write_break(request.mark);
  ScriptCall call;
  call.keys = {Word(keys.text, kPermitsKey)};
  call.arguments = {Word(request.token), kChannelPrefix, mark, request.at_once ? "1" : "0"};
  const auto connection = link_->connection();
  const auto answer =
      co_await run_script(env_, connection, scripts().evict_permits, call, deadline);
  if (answer.kind == ScriptAnswer::Kind::reply &&
      answer.code() == static_cast<int>(AcquireCode::foreign)) {
    result.failure = foreign_text(call.keys[0].text());
    co_return result;
  }
  result = take_evicted(request.name, answer);
  if (result.failure.error == Error::held_with_other_token) result.failure.text = request.name;
  co_return result;
}

asio::awaitable<Failure> RedisBackend::set_limit(std::string name, std::uint32_t limit,
                                                 TimePoint deadline) {
  const bool ready = co_await link_->ready(deadline);
  if (!ready) co_return link_->failure();
  const auto keys = names_.base(name);
  ScriptCall call;
  call.keys = {Word(keys.text, kPermitsKey)};
  call.arguments = {Word(std::uint64_t{limit}), kChannelPrefix};
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, scripts().set_limit, call, deadline);
  if (answer.kind != ScriptAnswer::Kind::reply) co_return answer.failure;
  if (answer.code() == static_cast<int>(AcquireCode::foreign)) {
    co_return foreign_text(call.keys[0].text());
  }
  co_return Failure{};
}

}  // namespace dlock::redis
