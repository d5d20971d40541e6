// SPDX-License-Identifier: Apache-2.0
//
// The record of a moved lock, as it stands in the source store in the lock's place. Backends keep
// its text as it is and compare it byte by byte; what it means is known here alone. No record:
// OPEN, the lock is a lock.
//
//   dlock-move1 MOVED gen=17.1 target=redis floor=17 max_lease_ms=30000 plan=billing-2026
//     id=0123456789abcdef since_ms=1763770000000        (one line)
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::core::migration {

enum class MoveState {
  moved,    ///< sealed; clients lock in the target
  closing,  ///< sealed; no new holder in the target, it drains
  final_,   ///< sealed; as moved, no way back
};

const char* to_string(MoveState state) noexcept;

/// Never repeats for a name: the token of the flip in the source, and a counter of the changes
/// since. A token is never granted twice.
struct Generation {
  std::uint64_t flip = 0;
  std::uint64_t counter = 0;
  /// By age: the tokens of flips rise, also from store to store.
  // NOLINTNEXTLINE(modernize-use-nullptr): what it finds in <=> is the compiler's own 0
  auto operator<=>(const Generation&) const noexcept = default;
};

struct Record {
  MoveState state = MoveState::moved;
  Generation gen;
  std::string target;       ///< the store's name in the configuration
  std::uint64_t floor = 0;  ///< tokens of the target are above this
  std::chrono::milliseconds max_lease{0};
  std::string plan;
  std::string plan_id;        ///< of that start of the plan: Plan::id
  std::int64_t since_ms = 0;  ///< wall clock of the change: for people, never for a decision
  bool operator==(const Record&) const noexcept = default;
};

std::string to_text(const Record& record);

/// Empty unless it is exactly what to_text() writes; `why` (if given) then says what is wrong.
std::optional<Record> parse_record(std::string_view text, std::string* why = nullptr);

/// The same record in another state, one change later.
Record next_record(const Record& record, MoveState state, std::int64_t wall_clock_ms);

/// 16 lower-case hexadecimal digits.
bool is_plan_id(std::string_view text) noexcept;

/// Whether a target's record only closes it while the lock is in `source`: there a rollback, or an
/// earlier plan that went the other way and is finished (MOVED), has left it, so
/// that nobody locks in the target who knows it alone, or the earlier plan. It holds against every
/// record of the source that is not younger; whoever comes with a younger one may open the place.
bool is_closed(const Record& in_target, std::string_view source) noexcept;

/// What the source is raised above when the target is gone for good and its tokens are not known.
/// Some stores seed them with the wall clock in microseconds, hence that; 2^48 more than anybody
/// can have counted. Empty: no room is left below 2^53.
std::optional<std::uint64_t> blind_floor(std::uint64_t floor, std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
