// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/token_ranges.hpp"

namespace dlock::redis {
namespace {

/// Locks that are known at once.
constexpr std::size_t kMost = 4096;

std::size_t hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }

}  // namespace

// The memory of one that is gone is not given to another while we point there.
void TokenRanges::use(const Connection& on) {
  const bool same = !connection_.owner_before(on) && !on.owner_before(connection_);
  if (same) return;
  ranges_.clear();
  connection_ = on;
}

TokenRanges::Range* TokenRanges::find(std::string_view key) {
  if (ranges_.empty()) return nullptr;
  const auto found = ranges_.find(hash_of(key));
  return found == ranges_.end() ? nullptr : &found->second;
}

std::optional<TokenRanges::Token> TokenRanges::take(const Connection& on, std::string_view key,
                                                    std::uint64_t min_token, TimePoint now) {
  use(on);
  auto* range = find(key);
  if (range == nullptr || range->next > range->last) return std::nullopt;
  if (now >= range->until - kAnswerTime) return std::nullopt;
  if (range->next <= min_token) return std::nullopt;
  return Token{range->next++, range->last, range->until};
}

bool TokenRanges::is_wanted(const Connection& on, std::string_view key, TimePoint now) {
  use(on);
  const auto* range = find(key);
  return range != nullptr && now >= range->rests_until && now - range->alone_at < kRangeLife;
}

bool TokenRanges::put(const Connection& on, std::string_view key, Span span, TimePoint asked,
                      TimePoint now) {
  use(on);
  auto* range = find(key);
  if (range == nullptr || now - range->alone_at >= kRangeLife) return false;
  range->next = span.token + 1;
  range->last = span.last;
  range->until = asked + kRangeLife;
  return true;
}

void TokenRanges::released_alone(const Connection& on, std::string_view key, TimePoint now) {
  use(on);
  auto* range = find(key);
  if (range == nullptr && has_room(now)) range = &ranges_[hash_of(key)];
  if (range != nullptr) range->alone_at = now;
}

void TokenRanges::met_others(std::string_view key, TimePoint now) {
  auto* range = find(key);
  if (range == nullptr) return;
  *range = {};
  range->rests_until = now + kRangeRest;
}

// A lock that is released while the table is full is recorded after the next sweep.
bool TokenRanges::has_room(TimePoint now) {
  if (ranges_.size() < kMost) return true;
  if (now - swept_ < kRangeLife) return false;
  swept_ = now;
  for (auto at = ranges_.begin(); at != ranges_.end();) {
    const auto& range = at->second;
    const bool idle = now - range.alone_at >= kRangeLife && now >= range.rests_until;
    at = idle ? ranges_.erase(at) : std::next(at);
  }
  return ranges_.size() < kMost;
}

}  // namespace dlock::redis
