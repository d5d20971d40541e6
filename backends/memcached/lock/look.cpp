// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/look.hpp"

#include <algorithm>
#include <charconv>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {
namespace {

/// Of a moment that another client wrote: it may be any number.
std::chrono::milliseconds age_of(std::int64_t since_ms, std::int64_t now_ms) {
  return std::chrono::milliseconds(now_ms - std::clamp<std::int64_t>(since_ms, 0, now_ms));
}

}  // namespace

std::optional<std::uint64_t> read_counter(const Item* item) {
  if (item == nullptr) return std::nullopt;
  // A counter that has shrunk is padded with spaces.
  std::uint64_t value = 0;
  const auto* end = item->value.data() + item->value.size();
  const auto [stopped, error] = std::from_chars(item->value.data(), end, value);
  if (error != std::errc() || stopped == item->value.data()) return std::nullopt;
  return value;
}

PollResult look_all(Commands& server, const std::vector<std::string>& keys,
                    const std::vector<ReleaseOrder>& strays) {
  PollResult result;
  std::vector<std::string> all = keys;
  for (const auto& stray : strays) all.push_back(stray.key);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  auto found = server.gets_and_canary(std::move(all));
  result.answer = std::move(found.answer);
  if (!result.answer.done()) return result;
  for (const auto& stray : strays) {
    const auto* item = found.get(stray.key);
    if (item != nullptr && belongs_to(item->value, stray.owner_id)) release(server, stray);
  }
  for (const auto& key : keys) {
    if (found.get(key) == nullptr) result.free.insert(key);
  }
  return result;
}

Peek peek(Commands& server, const std::string& key, const std::string& token_key) {
  Peek seen;
  auto found = server.gets({key, token_key});
  seen.answer = std::move(found.answer);
  if (!seen.answer.done()) return seen;
  if (const auto* item = found.get(key)) seen.value = item->value;
  seen.counter = read_counter(found.get(token_key));
  return seen;
}

Failure evict(Commands& server, const std::string& key, const std::string& token_key,
              std::uint64_t token) {
  constexpr int kTurns = 4;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = server.gets({key, token_key});
    if (!found.answer.done()) return std::move(found.answer.failure);
    const auto* item = found.get(key);
    if (item == nullptr) return failure(Error::not_held);
    if (read_counter(found.get(token_key)) != token) return failure(Error::held_with_other_token);
    auto answer = server.cas(key, item->value, kPastExpiry, item->cas);
    if (answer.done()) return {};
    // Renewed, or given back and taken by another: see with which token.
    if (answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found) continue;
    return std::move(answer.failure);
  }
  return failure(Error::unexpected, "the key changes all the time");
}

LockStatus describe(const std::string& name, const Peek& seen, std::int64_t now_ms) {
  using std::chrono::milliseconds;
  LockStatus status;
  status.name = name;
  status.held = seen.value.has_value();
  if (!status.held) return status;
  status.token = seen.counter;
  const auto value = read_value(*seen.value);
  if (!value) {
    status.owner = Owner{};
    status.notes.emplace_back("held by a client of another make");
    return status;
  }
  status.owner = value->owner;
  status.held_for = age_of(value->since_ms, now_ms);
  const auto lease = std::clamp(value->lease, milliseconds(0), kLongestLease);
  status.remaining = std::max(lease - age_of(value->renewed_ms, now_ms), milliseconds(0));
  status.notes.emplace_back("times are by the holder's wall clock");
  return status;
}

}  // namespace dlock::memcached
