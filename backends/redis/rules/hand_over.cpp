// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/hand_over.hpp"

#include <algorithm>
#include <charconv>

#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// The scripts keep the token of a lock that is handed over for two days: enough for such leases.
constexpr hours kLongestHandedLease{24};
/// The least rest of the probation that a successor needs to confirm it, beside the clock margin.
constexpr milliseconds kLeastLeft{100};
constexpr milliseconds kLeastMargin{20};

/// The number before the next space, which is taken off `text`; empty if there is none.
std::optional<std::uint64_t> next_number(std::string_view& text) {
  if (!text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

}  // namespace

WakeMessage read_message(std::string_view text) {
  WakeMessage message;
  message.owner_id = text.substr(0, kUuidLength);
  auto rest = text.substr(message.owner_id.size());
  const auto token = next_number(rest);
  const auto word = next_number(rest);
  const auto kept = next_number(rest);
  if (!token || !word || !kept || !rest.empty()) return message;
  // A longer probation is treated as kProbation.
  const auto kept_ms = std::min<std::uint64_t>(*kept, kProbation.count());
  message.grant = WakeMessage::Grant{*token, *word, milliseconds(kept_ms)};
  return message;
}

HandedLock handed_lock(const WakeMessage::Grant& grant, TimePoint sent, milliseconds lease) {
  return {grant.token, sent + std::min(grant.kept, lease)};
}

bool sends_presence(const ClaimRequest& request) {
  return request.queue && !request.gate && request.permits == 0 && request.mode == Mode::exclusive;
}

bool may_be_handed(const ClaimRequest& request) {
  return sends_presence(request) && request.lease <= kLongestHandedLease;
}

bool is_believable(const HandedLock& handed, const ClaimRequest& request, TimePoint now) {
  const auto margin = std::max(request.lease / 100, kLeastMargin);
  return handed.token > request.min_token && now + margin + kLeastLeft <= handed.until;
}

std::uint64_t SentWords::begin(TimePoint now) {
  sent_.at(++last_ % kKept) = now;
  return last_;
}

std::optional<TimePoint> SentWords::sent(std::uint64_t word) const {
  if (word <= forgotten_ || word > last_ || last_ - word >= kKept) return std::nullopt;
  return sent_.at(word % kKept);
}

}  // namespace dlock::redis
