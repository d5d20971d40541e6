// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/renew.hpp"

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

/// `none`: it is ours. `removed` stands for all kinds of absence until the server has said how it
/// is.
LossReason seen(const Item* item, const RenewOrder& order) {
  if (item == nullptr) return LossReason::removed;
  return belongs_to(item->value, order.value.owner.id) ? LossReason::none : LossReason::taken;
}

asio::awaitable<RenewResult> prolong(Commands& server, const RenewOrder& order, std::uint64_t cas) {
  RenewResult result;
  auto value = order.value;
  value.renewed_ms = server.wall_clock_us() / 1000;
  result.sent = server.now();
  const auto text = write_value(value);
  auto answer = co_await server.cas(order.key, text, exptime_of(order.value.lease), cas);
  result.number = answer.stored;
  switch (answer.outcome) {
    case Outcome::done:
      result.status = ExtendStatus::extended;
      co_return result;
    case Outcome::not_found:
      co_return gone(LossReason::removed);
    case Outcome::unknown:
      co_return failed(ExtendStatus::unknown, std::move(answer.failure));
    default:
      co_return failed(ExtendStatus::unavailable, std::move(answer.failure));
  }
}

/// Again, alone: the value has changed since it was read (a renewal of ours that was not answered),
/// or the answer was too slow to be trusted.
asio::awaitable<RenewResult> prolong_again(Commands& server, const RenewOrder& order) {
  const std::vector<std::string> keys{order.key};
  auto found = co_await server.gets(keys);
  if (!found.answer.done()) {
    co_return failed(ExtendStatus::unavailable, std::move(found.answer.failure));
  }
  const auto* item = found.get(order.key);
  if (const auto why = seen(item, order); why != LossReason::none) co_return gone(why);
  co_return co_await prolong(server, order, item->cas);
}

bool is_slow(Commands& server, const RenewResult& result) {
  return result.status == ExtendStatus::extended && server.now() - result.sent > kTrustedAnswer;
}

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
  results.reserve(orders.size());
  for (const auto& order : orders) {
    // One that was not answered has used up the time of all that follow.
    if (!results.empty() && results.back().status == ExtendStatus::unknown) {
      results.push_back(failed(ExtendStatus::unavailable, results.back().failure));
      continue;
    }
    const auto* item = found.get(order.key);
    const auto why = seen(item, order);
    auto result = gone(why);
    if (why == LossReason::none) result = co_await prolong(server, order, item->cas);
    const bool changed = why == LossReason::none && !result.failure.error &&
                         result.status == ExtendStatus::unavailable;
    if (changed || is_slow(server, result)) result = co_await prolong_again(server, order);
    results.push_back(std::move(result));
  }
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
  bool lost = false;
  for (const auto& order : orders) {
    const auto why = seen(found.get(order.key), order);
    lost = lost || why != LossReason::none;
    RenewResult result = why == LossReason::none ? RenewResult() : gone(why);
    if (why == LossReason::none) result.status = ExtendStatus::extended;
    results.push_back(std::move(result));
  }
  if (lost) co_await explain(server, orders, results);
  co_return results;
}

}  // namespace dlock::memcached
