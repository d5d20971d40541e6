// SPDX-License-Identifier: Apache-2.0
//
// Record: replaces a moved lock in the source store. Backends store its text unchanged and compare
// it byte by byte. Without a record the lock is OPEN: an ordinary lock.
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
  final_,   ///< in the target: closed by a rollback; of a FINAL gate: moved permanently
};

const char* to_string(MoveState state) noexcept;

/// Never repeats for a name: the token of the flip in the source, and a counter of the changes
/// since. A token is never granted twice.
struct Generation {
  std::uint64_t flip = 0;
  std::uint64_t counter = 0;
  /// Compares by age: the tokens of flips rise, also from store to store.
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 in <=> is the compiler's own
  auto operator<=>(const Generation&) const noexcept = default;
};

struct Record {
  MoveState state = MoveState::moved;
  Generation gen;
  std::string target;       ///< the store's name in the configuration
  std::uint64_t floor = 0;  ///< tokens of the target are above this
  std::chrono::milliseconds max_lease{0};
  std::string plan;
  std::string plan_id;        ///< Plan::id of the start that has moved the lock
  std::int64_t since_ms = 0;  ///< wall clock of the change: for people, never for a decision
  bool operator==(const Record&) const noexcept = default;
};

std::string to_text(const Record& record);

/// Returns nullopt unless `text` is exactly a text of to_text(). `why` gets the reason.
std::optional<Record> parse_record(std::string_view text, std::string* why = nullptr);

/// Returns the record in another state, with the next counter.
Record next_record(const Record& record, MoveState state, std::int64_t wall_clock_ms);

/// Returns whether `text` is 16 lower-case hexadecimal digits.
bool is_plan_id(std::string_view text) noexcept;

/// Returns whether a record in the target only closes the lock there while the lock is in `source`.
/// A rollback writes such a record (FINAL), and so does a finished plan in the other direction
/// (MOVED). It keeps out clients that know the target alone, and those of the earlier plan. A
/// client with a younger record of the source may remove it.
bool is_closed(const Record& in_target, std::string_view source) noexcept;

/// Returns the floor for the source if the target is permanently lost and its tokens are unknown.
/// Some stores seed tokens with the wall clock in microseconds; 2^48 more exceeds every count.
/// Empty: no token is left below 2^53.
std::optional<std::uint64_t> blind_floor(std::uint64_t floor, std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
