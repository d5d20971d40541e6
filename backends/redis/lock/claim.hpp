// SPDX-License-Identifier: Apache-2.0
//
// What the backend keeps about one claim: its keys, how it stands in the queue, and what of it may
// be on the server.
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

/// How long the last token is remembered: while it is, tokens rise whatever the server's clock
/// does.
inline constexpr std::chrono::hours kFenceMemory{48};

struct KeyClaim;
/// All that live, by owner id: who is told that a lock may be free.
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

  /// Its next try says by how much it is to come earlier, if at all.
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

  /// How long the server keeps it without news from us: the holder believes the lease only.
  std::chrono::milliseconds kept_for(std::chrono::milliseconds lock_delay) const noexcept {
    return request().lease + lock_delay;
  }

  /// A grant's token is above this.
  std::uint64_t min_token() const noexcept { return std::max(request().min_token, unproven); }

  /// Others had the lock when it was asked for, and may be waiting for it.
  bool has_met_others() const noexcept { return asked != TimePoint{}; }

  /// The server may have it as a reader's: it is one, or its downgrade was sent.
  bool may_read() const noexcept { return request().mode == Mode::shared || stepping_down; }

  const KeyBase keys;
  const std::string waiter;      ///< as in the queue
  const std::string_view owner;  ///< as in the lock's value; the end of `waiter`

  std::string arrival;        ///< our place: as the server gave it, kept through re-queueing
  bool maybe_queued = false;  ///< the queue may name us
  QueuePosition position;
  TimePoint asked{};

  bool was_granted = false;
  std::uint64_t token = 0;     ///< of the last grant
  std::uint64_t unproven = 0;  ///< the lock may be ours with this one, which others may be above
  std::uint64_t epoch = 0;     ///< of the server that was last known to have it
  bool releasing = false;      ///< a release was sent and may have been done
  bool stepping_down = false;  ///< a downgrade was sent, and was not refused

  bool was_late = false;    ///< the last request was executed after its deadline
  bool place_told = false;  ///< how many wait before it, which one asks for once
  std::string asked_for;    ///< as it was told last that its holder is asked

  WaiterKind kind = WaiterKind::none;
  std::optional<HandedLock> handed;  ///< what a release has given it, not looked at yet

  bool woken = false;
  Signal signal;
  const std::shared_ptr<ClaimRegistry> registry;
};

using KeyClaimPtr = std::shared_ptr<KeyClaim>;

}  // namespace dlock::redis
