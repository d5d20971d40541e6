// SPDX-License-Identifier: Apache-2.0
//
// The state of one claim: its keys, its place in the queue, and its possible traces on the server.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/redis/rules/hand_over.hpp"
#include "backends/redis/rules/names.hpp"
#include "backends/redis/rules/poll.hpp"
#include "backends/redis/rules/value.hpp"
#include "backends/redis/rules/waiting.hpp"
#include "backends/redis/wire/codec.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {

/// How long the server remembers the last token. During that time tokens rise whatever the server's
/// clock does.
inline constexpr std::chrono::hours kFenceMemory{48};

struct KeyClaim;
/// All claims, by owner id. A message that a lock may be free is for one of them.
using ClaimRegistry =
    std::unordered_map<std::string_view, KeyClaim*, std::hash<std::string_view>, std::equal_to<>,
                       detail::Recycled<std::pair<const std::string_view, KeyClaim*>>>;

struct KeyClaim final : Claim {
  KeyClaim(ClaimRequest request, Env& env, KeyBase lock_keys, WaiterText text,
           std::shared_ptr<ClaimRegistry> all)
      : Claim(std::move(request)),
        keys(std::move(lock_keys)),
        waiter(std::move(text.text)),
        owner(std::string_view(waiter).substr(text.owner_at)),
        signal(env),
        registry(std::move(all)) {
    has_not_arrived();
    registry->emplace(this->request().owner.id, this);
  }
  ~KeyClaim() override { registry->erase(request().owner.id); }

  /// Sets the head start of the next try in the queue, if the claim has one.
  void has_not_arrived() {
    arrival.clear();
    const std::chrono::microseconds head_start = request().head_start;
    if (head_start.count() > 0) arrival = fmt::format("-{}", head_start.count());
  }

  void wake() {
    woken = true;
    signal.notify();
  }

  Word beside(std::string_view suffix) const { return {keys.text, suffix}; }

  /// How long the server keeps the lock without a renewal. The holder treats only the lease as
  /// valid.
  std::chrono::milliseconds kept_for(std::chrono::milliseconds lock_delay) const noexcept {
    return request().lease + lock_delay;
  }

  /// The token of a grant must be above this.
  std::uint64_t min_token() const noexcept { return std::max(request().min_token, unproven); }

  /// Returns whether another client held the lock when it was requested, and may be waiting for it.
  bool has_met_others() const noexcept { return asked != TimePoint{}; }

  /// Returns whether the server may hold it as a reader's: its mode is shared, or its downgrade was
  /// sent.
  bool may_read() const noexcept { return request().mode == Mode::shared || stepping_down; }

  const KeyBase keys;
  const std::string waiter;      ///< as in the queue
  const std::string_view owner;  ///< as in the lock's value; the end of `waiter`

  std::string arrival;  ///< place in the queue, as the server assigned it; kept when the claim is
                        ///< queued again
  bool maybe_queued = false;  ///< the queue may name us
  QueuePosition position;
  TimePoint asked{};

  bool was_granted = false;
  std::uint64_t token = 0;     ///< the token of the last grant
  std::uint64_t unproven = 0;  ///< the lock may be held with this token; other grants may be above
                               ///< it
  std::uint64_t epoch = 0;     ///< epoch of the server that last confirmed the lock
  bool releasing = false;      ///< a release was sent and may have been done
  bool stepping_down = false;  ///< a downgrade was sent, and was not refused

  bool was_late = false;    ///< the last request was executed after its deadline
  bool place_told = false;  ///< the number of waiters before it was returned; it is requested once
  std::string asked_for;    ///< the last request to its holder that was reported

  WaiterKind kind = WaiterKind::none;
  std::optional<HandedLock> handed;  ///< a lock that a release handed over, not examined yet

  bool woken = false;
  Signal signal;
  const std::shared_ptr<ClaimRegistry> registry;
};

using KeyClaimPtr = std::shared_ptr<KeyClaim>;

}  // namespace dlock::redis
