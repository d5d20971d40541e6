// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/look.hpp"

#include <algorithm>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {
std::optional<std::uint64_t> counter_of(const Item* item) {
  if (item == nullptr) return std::nullopt;
  return read_counter(item->value);
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
    if (item != nullptr && belongs_to(item->value, stray.owner_id)) co_await release(server, stray);
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

asio::awaitable<Failure> evict(Commands& server, std::string key, std::string token_key,
                               std::uint64_t token) {
  constexpr int kTurns = 4;
  const std::vector<std::string> keys{key, token_key};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) co_return std::move(found.answer.failure);
    const auto* item = found.get(key);
    if (item == nullptr) co_return failure(Error::not_held);
    if (counter_of(found.get(token_key)) != token) {
      co_return failure(Error::held_with_other_token);
    }
    auto answer = co_await server.cas(key, item->value, kPastExpiry, item->number);
    if (answer.done()) co_return Failure{};
    // Renewed, or given back and taken by another: see with which token.
    if (answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found) continue;
    co_return std::move(answer.failure);
  }
  co_return failure(Error::unexpected, "the key changes all the time");
}

}  // namespace dlock::memcached
