// SPDX-License-Identifier: Apache-2.0
//
// How a claim waits: the argument of acquire with named fields. Pure.
//
//   queued=no range=no kind=handed patience=11000 arrival=1764129630000000
//
//   queued    yes: the queue may have this waiter; a grant removes it
//   range     yes: the grant brings a range of tokens (token_ranges.hpp)
//   kind      a WaiterKind
//   patience  how long the queue keeps a waiter that does not poll, in ms
//   arrival   the place in the queue, in us; empty at first, or `-` and the head start
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "dlock/spi/claim.hpp"

namespace dlock::redis {

/// How a release treats a waiter. `%alive` has the kind of each.
enum class WaiterKind : std::uint8_t {
  none,      ///< does not queue
  notified,  ///< gets a message
  present,   ///< gets a message; its process reports its presence
  handed,    ///< may get the lock itself; its process reports its presence
  reads,     ///< waits to read, and gets a message
};

/// `hands_over`: releases of this store hand locks to waiters.
WaiterKind waiter_kind(const ClaimRequest& request, bool hands_over);

/// The side effect of a grant.
enum class AtGrant : std::uint8_t { nothing, leave_queue, bring_range };

/// All texts of one store up to the arrival, so that no request builds one.
class WaitingTexts {
 public:
  explicit WaitingTexts(std::chrono::milliseconds patience);

  /// Lifetime: valid while this object exists.
  std::string_view text(WaiterKind kind, AtGrant at_grant) const;

 private:
  static constexpr std::size_t kKinds = 5;
  static constexpr std::size_t kAtGrants = 3;
  std::array<std::string, kKinds * kAtGrants> texts_;
};

}  // namespace dlock::redis
