// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/renew.hpp"

#include <numeric>

#include "backends/memcached/rules/lease.hpp"

namespace dlock::memcached {
namespace {

std::vector<std::string> keys_of(const std::vector<RenewOrder>& orders) {
  std::vector<std::string> keys;
  keys.reserve(orders.size() + 1);
  for (const auto& order : orders) keys.push_back(order.key);
  return keys;
}

RenewResult failed(ExtendStatus status, Failure why) {
  RenewResult result;
  result.status = status;
  result.failure = std::move(why);
  return result;
}

RenewResult gone(LossReason reason) {
  RenewResult result;
  result.status = ExtendStatus::gone;
  result.reason = reason;
  return result;
}

/// `none`: the value is this claim's. `removed` is returned for all kinds of absence until the
/// server's facts show the reason.
LossReason seen(const Item* item, const RenewOrder& order) {
  if (item == nullptr) return LossReason::removed;
  const auto& id = order.value.owner.id;
  if (belongs_to(item->value, id)) return LossReason::none;
  return mark_of(item->value, id) ? LossReason::broken : LossReason::taken;
}

RenewResult lost(const Item* item, const RenewOrder& order, LossReason why) {
  auto result = gone(why);
  if (why == LossReason::broken) {
    result.broken_by = break_words(*mark_of(item->value, order.value.owner.id));
  }
  return result;
}

/// Converts the answer to a renewal, without the time at which it was sent.
RenewResult renewed(Answer answer) {
  switch (answer.outcome) {
    case Outcome::done: {
      RenewResult result;
      result.status = ExtendStatus::extended;
      result.number = answer.stored;
      return result;
    }
    case Outcome::not_found:
      return gone(LossReason::removed);
    case Outcome::unknown:
      return failed(ExtendStatus::unknown, std::move(answer.failure));
    default:
      return failed(ExtendStatus::unavailable, std::move(answer.failure));
  }
}

/// A batch of renewals: one round trip for all claims that still have their keys.
class Batch {
 public:
  using Places = std::vector<std::size_t>;

  Batch(Commands& server, const std::vector<RenewOrder>& orders)
      : server_(server), orders_(orders), results_(orders.size()) {}

  /// Those at `places`, of which `found` was read.
  asio::awaitable<void> prolong(Places places, const Found& found) {
    std::vector<Replacement> all;
    Places asked;
    for (const auto place : places) {
      const auto& order = orders_[place];
      const auto* item = found.get(order.key);
      const auto why = seen(item, order);
      results_[place] = lost(item, order, why);
      if (why != LossReason::none) continue;
      auto value = order.value;
      value.renewed_ms = server_.wall_clock_us() / 1000;
      all.push_back({order.key, write_value(value), exptime_of(value.lease), item->number});
      asked.push_back(place);
    }
    if (all.empty()) co_return;
    const auto sent = server_.now();
    auto answers = co_await server_.cas_all(all);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      auto& result = results_[asked[i]] = renewed(std::move(answers[i]));
      result.sent = sent;
    }
  }

  /// Repeats a renewal if an unanswered renewal of this claim has changed the value since it was
  /// read. Also repeats it if the answer was too slow to be trusted.
  asio::awaitable<void> prolong_again() {
    Places places;
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!is_changed(results_[i]) && !is_slow(results_[i])) continue;
      places.push_back(i);
      keys.push_back(orders_[i].key);
    }
    if (places.empty()) co_return;
    const auto found = co_await server_.gets(keys);
    if (found.answer.done()) co_return co_await prolong(std::move(places), found);
    for (const auto place : places) {
      results_[place] = failed(ExtendStatus::unavailable, found.answer.failure);
    }
  }

  std::vector<RenewResult>& results() noexcept { return results_; }

 private:
  static bool is_changed(const RenewResult& result) {
    return result.status == ExtendStatus::unavailable && !result.failure.error;
  }
  bool is_slow(const RenewResult& result) const {
    return result.status == ExtendStatus::extended && server_.now() - result.sent > kTrustedAnswer;
  }

  Commands& server_;
  const std::vector<RenewOrder>& orders_;
  std::vector<RenewResult> results_;
};

asio::awaitable<void> explain(Commands& server, const std::vector<RenewOrder>& orders,
                              std::vector<RenewResult>& results) {
  co_await server.refresh_facts();
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].info = server.info();
    if (results[i].status == ExtendStatus::gone && results[i].reason == LossReason::removed) {
      results[i].reason = reason_of_loss(orders[i].info, server.info());
    }
  }
}

}  // namespace

asio::awaitable<std::vector<RenewResult>> renew(Commands& server, std::vector<RenewOrder> orders) {
  auto keys = keys_of(orders);
  auto found = co_await server.gets_and_canary(std::move(keys));
  std::vector<RenewResult> results;
  if (!found.answer.done()) {
    results.assign(orders.size(), failed(ExtendStatus::unavailable, found.answer.failure));
    co_return results;
  }
  Batch batch(server, orders);
  Batch::Places all(orders.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  co_await batch.prolong(std::move(all), found);
  co_await batch.prolong_again();
  results = std::move(batch.results());
  co_await explain(server, orders, results);
  co_return results;
}

asio::awaitable<std::vector<RenewResult>> verify(Commands& server, std::vector<RenewOrder> orders) {
  auto keys = keys_of(orders);
  auto found = co_await server.gets_and_canary(std::move(keys));
  std::vector<RenewResult> results;
  if (!found.answer.done()) {
    results.assign(orders.size(), failed(ExtendStatus::unavailable, found.answer.failure));
    co_return results;
  }
  results.reserve(orders.size());
  bool is_lost = false;
  for (const auto& order : orders) {
    const auto* item = found.get(order.key);
    const auto why = seen(item, order);
    is_lost = is_lost || why != LossReason::none;
    RenewResult result = why == LossReason::none ? RenewResult() : lost(item, order, why);
    if (why == LossReason::none) result.status = ExtendStatus::extended;
    results.push_back(std::move(result));
  }
  if (is_lost) co_await explain(server, orders, results);
  co_return results;
}

}  // namespace dlock::memcached
