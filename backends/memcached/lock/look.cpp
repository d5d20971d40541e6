// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/look.hpp"

#include <algorithm>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {
std::optional<std::uint64_t> counter_of(const Item* item) {
  if (item == nullptr) return std::nullopt;
  return read_counter(item->value);
}

Failure broken_counter(const std::string& token_key, const Item* item) {
  auto newer = item == nullptr ? std::string() : newer_counter(token_key, item->value);
  if (newer.empty()) return failure(Error::token_broken, token_key);
  return failure(Error::newer_format, std::move(newer));
}

asio::awaitable<PollResult> look_all(Commands& server, std::vector<std::string> keys,
                                     std::vector<ReleaseOrder> strays) {
  PollResult result;
  std::vector<std::string> all = keys;
  for (const auto& stray : strays) all.push_back(stray.key);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  auto found = co_await server.gets_and_canary(std::move(all));
  result.answer = std::move(found.answer);
  if (!result.answer.done()) co_return result;
  for (const auto& stray : strays) {
    const auto* item = found.get(stray.key);
    const bool is_there = item != nullptr && (belongs_to(item->value, stray.owner_id) ||
                                              mark_of(item->value, stray.owner_id));
    if (is_there) co_await release(server, stray);
  }
  for (const auto& key : keys) {
    if (found.get(key) == nullptr) result.free.insert(key);
  }
  co_return result;
}

asio::awaitable<Peek> peek(Commands& server, std::string key, std::string token_key) {
  Peek seen;
  const std::vector<std::string> keys{key, token_key};
  auto found = co_await server.gets(keys);
  seen.answer = std::move(found.answer);
  if (!seen.answer.done()) co_return seen;
  if (const auto* item = found.get(key)) seen.value = item->value;
  seen.counter = counter_of(found.get(token_key));
  co_return seen;
}

namespace {

/// The longest time that the item lives on, in whole seconds.
asio::awaitable<std::chrono::seconds> time_left(Commands& server, std::string key, Value value) {
  const auto said = co_await server.seconds_left(key);
  if (said.answer.done()) {
    co_return std::chrono::seconds(std::max<std::uint64_t>(said.value, 1));
  }
  co_return std::chrono::seconds(exptime_of(value.lease));
}

EvictAnswer refused(Failure why) {
  EvictAnswer answer;
  answer.failure = std::move(why);
  return answer;
}

}  // namespace

asio::awaitable<EvictAnswer> evict(Commands& server, LockKeys lock, EvictRequest request) {
  constexpr int kTurns = 4;
  const std::vector<std::string> keys{lock.key, lock.token_key};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) co_return refused(std::move(found.answer.failure));
    const auto* item = found.get(lock.key);
    if (item == nullptr) co_return refused(failure(Error::not_held));
    if (auto newer = newer_value(lock.key, item->value); !newer.empty()) {
      co_return refused(failure(Error::newer_format, std::move(newer)));
    }
    if (counter_of(found.get(lock.token_key)) != request.token) {
      co_return refused(failure(Error::held_with_other_token));
    }
    auto value = read_value(item->value);
    // An acquirer stores its value before it counts: the counter is still at the last token.
    if (request.is_marked && !(value && value->broken)) co_return refused(failure(Error::not_held));
    if (!value && !request.at_once) co_return refused(unaware_holder());
    EvictAnswer result;
    result.is_free = request.at_once;
    auto exptime = kPastExpiry;
    auto text = item->value;
    if (value) {
      const auto left = co_await time_left(server, lock.key, *value);
      result.within = left;
      if (!request.at_once && value->broken) co_return result;
      if (!request.at_once) {
        value->broken = request.mark;
        text = write_value(*value);
        exptime = std::min<std::time_t>(left.count(), kPastExpiry - 1);
      }
    }
    auto answer = co_await server.cas(lock.key, text, exptime, item->number);
    if (answer.done()) co_return result;
    // Renewed, or released and acquired by another client: compare its token.
    if (answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found) continue;
    co_return refused(std::move(answer.failure));
  }
  co_return refused(failure(Error::unexpected, "the key changes all the time"));
}

}  // namespace dlock::memcached
