// SPDX-License-Identifier: Apache-2.0
//
// Issues tickets. A ticket is the place in the queue and the fencing token. So no ticket may be
// issued twice, not even after a power cut that lost the writes since the last fsync. Pure: other
// code reads and writes the ledger.
//
// The rule (a high-water mark): tickets are issued up to `limit` only. Before `limit` rises, the
// new value is in `raised` and on disk. After a boot an unknown number of the last boot's tickets
// was lost with the page cache, but none was above the marks: continue above them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dlock/sequencer.hpp"

namespace dlock::local {

using BootId = std::array<unsigned char, 16>;

/// The number of tickets per fsync.
inline constexpr std::uint64_t kTicketsPerSync = 65'536;
inline constexpr std::uint64_t kLastTicket = kTokenEnd - 1;

struct Ledger {
  std::uint64_t last = 0;    ///< the last ticket issued
  std::uint64_t limit = 0;   ///< may be issued up to here: surely on disk
  std::uint64_t raised = 0;  ///< the next limit, perhaps not yet on disk
  BootId boot{};             ///< the boot in which `last` was written

  friend bool operator==(const Ledger&, const Ledger&) = default;
};

/// last <= limit <= raised, and within bounds; anything else was not written by us.
bool is_consistent(const Ledger& ledger);

/// The ledger of a new file: its first ticket is `above + 1`.
Ledger new_ledger(std::uint64_t above, const BootId& boot);

struct NextTicket {
  enum class Action {
    issue,   ///< write `ledger`, then the claim has `ticket`
    raise,   ///< write `ledger`, sync, confirm(ledger.raised), ask again
    refuse,  ///< no ticket is left
  };
  Action what = Action::refuse;
  std::uint64_t ticket = 0;
  Ledger ledger;
  /// With issue: also sync and confirm(ledger.raised), soon, so that no claim has to wait for it.
  bool raise_soon = false;
};

NextTicket next_ticket(const Ledger& ledger, const BootId& boot, std::uint64_t min_token);

/// All later tickets are above `min_token`. The ledger must be on disk before it counts. Empty: no
/// ticket would be left.
std::optional<Ledger> raised_above(const Ledger& ledger, const BootId& boot,
                                   std::uint64_t min_token);

/// The ledger once a sync has ended that began after `raised` had been written.
Ledger confirm(Ledger ledger, std::uint64_t raised);

}  // namespace dlock::local
