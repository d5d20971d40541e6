// SPDX-License-Identifier: Apache-2.0
//
// A claim's way: asked for, waited for, renewed, given back.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "backends/memcached/backend.hpp"
#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/offer.hpp"
#include "backends/memcached/wire/together.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {
namespace {

KeyClaimPtr mine(const ClaimPtr& claim) { return std::static_pointer_cast<KeyClaim>(claim); }

Validity validity_from(TimePoint sent, Duration lease) { return {sent + lease, sent + lease / 3}; }

/// Returns until when a copy of the claim's unanswered request may still arrive. The core uses the
/// same time (one lease).
TimePoint late_until(const KeyClaim& claim, TimePoint now) { return now + claim.request().lease; }

}  // namespace

ClaimPtr MemcachedBackend::make_claim(ClaimRequest request) {
  const auto& name = request.name;
  const auto& server = server_of_name(name);
  auto key = names_.lock_key(name);
  auto token_key = names_.token_key(name);
  auto claim = std::make_shared<KeyClaim>(std::move(request), env_, server);
  claim->key = std::move(key);
  claim->token_key = std::move(token_key);
  return claim;
}

asio::awaitable<ClaimAnswer> MemcachedBackend::claim(ClaimPtr any_claim, TimePoint deadline) {
  const auto claim = mine(any_claim);
  AcquireOrder order{claim->key,      claim->token_key,
                     claim->value(),  claim->request().min_token,
                     claim->in_doubt, claim->request().adoption};
  if (order.adoption) order.min_token = std::max(order.min_token, order.adoption->token);
  auto work = [order = std::move(order)](Call& call) mutable {
    return acquire(call, std::move(order));
  };
  auto ran = co_await claim->server->line().run<AcquireResult>(std::move(work), deadline);
  ClaimAnswer answer;
  if (!ran.result) {
    answer.status = ClaimStatus::unavailable;
    answer.failure = about(*claim->server, std::move(ran.why));
    co_return answer;
  }
  auto& result = *ran.result;
  answer.status = result.status;
  answer.failure = std::move(result.failure);
  const bool may_adopt_late =
      claim->request().adoption != nullptr && result.status == ClaimStatus::unknown;
  if (result.late_add || may_adopt_late) claim->late_until = late_until(*claim, env_.now());
  // An add may still be executed: a claim that gives up now has something to withdraw.
  if (result.status == ClaimStatus::busy && claim->late_until > env_.now()) {
    answer.status = ClaimStatus::waiting;
  }
  if (result.status == ClaimStatus::granted) {
    answer.token = result.token;
    answer.validity = validity_from(result.sent, claim->request().lease);
    claim->granted = true;
    claim->since_ms = result.since_ms;
    claim->info = std::move(result.info);
    claim->stored = result.number;
    claim->server->hold(claim);
  }
  claim->in_doubt = claim->in_doubt || result.status == ClaimStatus::granted ||
                    result.status == ClaimStatus::unknown || result.late_add;
  co_return answer;
}

asio::awaitable<void> MemcachedBackend::wait(ClaimPtr any_claim, TimePoint deadline) {
  const auto claim = mine(any_claim);
  co_await claim->server->wait(claim, deadline);
}

void MemcachedBackend::interrupt(Claim& claim) noexcept {
  static_cast<KeyClaim&>(claim).wake.notify();
}

asio::awaitable<std::vector<ExtendAnswer>> MemcachedBackend::extend(std::vector<ClaimPtr> claims,
                                                                    TimePoint deadline) {
  std::map<Server*, std::pair<Claims, std::vector<std::size_t>>> by_server;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    auto claim = mine(claims[i]);
    auto& [group, places] = by_server[claim->server.get()];
    group.push_back(std::move(claim));
    places.push_back(i);
  }
  std::vector<asio::awaitable<std::vector<ExtendAnswer>>> tasks;
  tasks.reserve(by_server.size());
  for (auto& [server, group] : by_server) {
    tasks.push_back(extend_on(server->shared_from_this(), std::move(group.first), deadline));
  }
  auto parts = co_await together(env_, std::move(tasks));
  std::vector<ExtendAnswer> answers(claims.size());
  auto part = parts.begin();
  for (const auto& [server, group] : by_server) {
    part->resize(group.second.size());
    for (std::size_t i = 0; i < group.second.size(); ++i) {
      answers[group.second[i]] = std::move((*part)[i]);
    }
    ++part;
  }
  co_return answers;
}

// In portions, some of them at once: their round trips are those of one, and an acquire need not
// wait for thousands of answers.
asio::awaitable<std::vector<ExtendAnswer>> MemcachedBackend::extend_on(
    std::shared_ptr<Server> server, Claims claims, TimePoint deadline) {
  constexpr std::size_t kPortion = 64;
  constexpr std::size_t kAtOnce = 16;
  std::vector<ExtendAnswer> answers;
  answers.reserve(claims.size());
  for (std::size_t from = 0; from < claims.size();) {
    std::vector<asio::awaitable<std::vector<ExtendAnswer>>> tasks;
    tasks.reserve(kAtOnce);
    std::vector<std::size_t> sizes;
    sizes.reserve(kAtOnce);
    while (from < claims.size() && tasks.size() < kAtOnce) {
      const auto count = std::min(kPortion, claims.size() - from);
      const auto first = claims.begin() + static_cast<std::ptrdiff_t>(from);
      Claims portion(first, first + static_cast<std::ptrdiff_t>(count));
      tasks.push_back(extend_portion(server, std::move(portion), deadline));
      sizes.push_back(count);
      from += count;
    }
    auto parts = co_await together(env_, std::move(tasks));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // One whose task threw has none.
      parts[i].resize(sizes[i]);
      std::move(parts[i].begin(), parts[i].end(), std::back_inserter(answers));
    }
  }
  co_return answers;
}

asio::awaitable<std::vector<ExtendAnswer>> MemcachedBackend::extend_portion(
    std::shared_ptr<Server> server, Claims claims, TimePoint deadline) {
  using Results = std::vector<RenewResult>;
  std::vector<ExtendAnswer> answers(claims.size());
  std::vector<RenewOrder> orders;
  orders.reserve(claims.size());
  for (const auto& claim : claims) orders.push_back(Server::order_of(*claim));
  auto work = [orders = std::move(orders)](Call& call) mutable {
    return renew(call, std::move(orders));
  };
  auto ran = co_await server->line().run<Results>(std::move(work), deadline);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    auto& answer = answers[i];
    auto& claim = *claims[i];
    claim.stored = {};  // until it is known again
    if (!ran.result) {
      answer.status = ExtendStatus::unavailable;
      answer.failure = about(*server, ran.why);
      continue;
    }
    auto& result = (*ran.result)[i];
    answer.status = result.status;
    answer.reason = result.reason;
    answer.broken_by = std::move(result.broken_by);
    answer.failure = std::move(result.failure);
    if (result.status == ExtendStatus::gone) server->forget(claim);
    if (result.status != ExtendStatus::extended) continue;
    answer.validity = validity_from(result.sent, claim.request().lease);
    claim.stored = result.number;
    claim.info = std::move(result.info);
  }
  co_return answers;
}

// `within` is the exporter's to keep: the server has no clock that could be asked.
asio::awaitable<Failure> MemcachedBackend::offer(ClaimPtr held, std::string proof,
                                                 std::chrono::milliseconds, TimePoint deadline) {
  const auto claim = mine(held);
  claim->proof = std::move(proof);
  claim->stored = {};
  OfferOrder order{claim->key, claim->value()};
  auto work = [order = std::move(order)](Call& call) mutable {
    return memcached::offer(call, std::move(order));
  };
  auto ran = co_await claim->server->line().run<Failure>(std::move(work), deadline);
  if (ran.result) co_return std::move(*ran.result);
  co_return make_failure(errc::unavailable, about(*claim->server, std::move(ran.why)).text);
}

asio::awaitable<ReleaseAnswer> MemcachedBackend::release(ClaimPtr any_claim, bool,
                                                         TimePoint deadline) {
  const auto claim = mine(any_claim);
  claim->server->forget(*claim);
  ReleaseOrder order{claim->key, claim->request().owner.id, claim->stored};
  auto work = [order = std::move(order)](Call& call) mutable {
    return memcached::release(call, std::move(order));
  };
  auto ran = co_await claim->server->line().run<ReleaseResult>(std::move(work), deadline);
  ReleaseAnswer answer;
  if (ran.result) {
    answer.status = ran.result->status;
    answer.failure = std::move(ran.result->failure);
  } else {
    answer.status = ReleaseStatus::unavailable;
    answer.failure = about(*claim->server, std::move(ran.why));
  }
  if (answer.status == ReleaseStatus::unknown) claim->release_in_doubt = true;
  // Nothing there: for a withdrawal, and after a release that was not answered, that is success.
  if (answer.status == ReleaseStatus::not_holder && (!claim->granted || claim->release_in_doubt)) {
    answer.status = ReleaseStatus::released;
  }
  if (answer.status == ReleaseStatus::released || answer.status == ReleaseStatus::not_holder) {
    claim->granted = false;
    claim->server->given_back(claim->key);
    if (claim->late_until > env_.now()) {
      claim->server->add_stray({claim->key, claim->request().owner.id, {}}, claim->late_until);
      claim->late_until = {};
    }
  }
  co_return answer;
}

}  // namespace dlock::memcached
