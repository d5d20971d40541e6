// SPDX-License-Identifier: Apache-2.0
//
// Which ticket comes next. A ticket is the place in the queue and the fencing token, so no ticket
// may be issued twice, not even after a power cut that threw away what was written since the last
// fsync. Pure: the ledger is read and written by others.
//
// The rule (a high-water mark): tickets are issued up to `limit` only, and before `limit` rises,
// the new value stands in `raised` and has reached the disk. After a boot nobody knows how many
// tickets of the last one were lost with the page cache, but none was above the marks: go on above
// them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dlock/sequencer.hpp"

namespace dlock::local {

using BootId = std::array<unsigned char, 16>;

/// How many tickets one fsync is good for.
inline constexpr std::uint64_t kTicketsPerSync = 65'536;
inline constexpr std::uint64_t kLastTicket = kTokenEnd - 1;

struct Ledger {
  std::uint64_t last = 0;    ///< the last ticket issued
  std::uint64_t limit = 0;   ///< may be issued up to here: surely on disk
  std::uint64_t raised = 0;  ///< the next limit, perhaps not yet on disk
  BootId boot{};             ///< of the boot in which `last` was written

  friend bool operator==(const Ledger&, const Ledger&) = default;
};

/// last <= limit <= raised, and within bounds; anything else was not written by us.
bool is_consistent(const Ledger& ledger);

/// Of a new file: the first ticket will be `above + 1`.
Ledger new_ledger(std::uint64_t above, const BootId& boot);

struct NextTicket {
  enum class Action {
    issue,   ///< write `ledger`, then `ticket` is ours
    raise,   ///< write `ledger`, sync, confirm(ledger.raised), ask again
    refuse,  ///< no ticket is left
  };
  Action what = Action::refuse;
  std::uint64_t ticket = 0;
  Ledger ledger;
  /// With issue: also sync and confirm(ledger.raised), soon, so that nobody has to wait for it.
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
