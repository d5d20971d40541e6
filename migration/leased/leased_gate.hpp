// SPDX-License-Identifier: Apache-2.0
//
// The leased gate of a plan: one note that says in which of the plan's two stores a lock is
// acquired now. It is kept in a store that does not forget, the target or a third one. Pure.
//
//   S_ALONE --at once--> S_THEN_T --after the wait--> T_ALONE --at once--> FINAL
//   S_ALONE <--at once-- S_THEN_T
//   S_ALONE <--after the wait-- T_THEN_S <--at once-- T_ALONE,  T_THEN_S --at once--> T_ALONE
//   S_ALONE --at once--> ENDED
//
// Each change is a compare-and-set of the whole text, and no text returns: a turn raises the
// version, any other change raises the ceiling, and each new gate has its own `born`. A program
// treats a reading as valid for one lease. The program that turns the gate from "both" to one store
// waits until no older reading counts. docs/models/leased.pml.
//
//   dlock-leased1 S_THEN_T ver=2 from=redis to=zk floor=0 ceiling=1763770068719476736
//     lease_ms=10000 plan=billing-2026 id=0123456789abcdef born=89abcdef01234567
//     since_ms=1763770000000        (one line)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/clock.hpp"

namespace dlock::core::migration {

enum class LeasedState { source, source_then_target, target, target_then_source, final_, ended };

const char* to_string(LeasedState state) noexcept;

/// A lock is acquired in the source alone, and a hold there is treated as valid.
constexpr bool is_source_alone(LeasedState state) noexcept {
  return state == LeasedState::source || state == LeasedState::ended;
}
constexpr bool is_target_alone(LeasedState state) noexcept {
  return state == LeasedState::target || state == LeasedState::final_;
}
constexpr bool is_both(LeasedState state) noexcept {
  return state == LeasedState::source_then_target || state == LeasedState::target_then_source;
}
/// The source is locked first, and its token is shown.
constexpr bool is_source_first(LeasedState state) noexcept {
  return is_source_alone(state) || state == LeasedState::source_then_target;
}

struct LeasedGate {
  LeasedState state = LeasedState::source;
  std::uint64_t version = 1;  ///< rises with each turn; 0: the plan's start is not complete
  std::string from;           ///< the stores' names in the configuration
  std::string to;
  std::uint64_t floor = 0;    ///< a granted token is above it
  std::uint64_t ceiling = 0;  ///< and at most this, unless the gate is FINAL
  std::chrono::milliseconds lease{0};
  std::string plan;
  std::string plan_id;
  std::string born;           ///< 16 hexadecimal digits of this gate's creation
  std::int64_t since_ms = 0;  ///< wall clock of the last turn: for people, never for a decision
  bool has_begun() const noexcept { return version > 0; }
  bool operator==(const LeasedGate&) const = default;
};

inline constexpr std::chrono::milliseconds kDefaultGateLease{10'000};
inline constexpr std::chrono::milliseconds kShortestGateLease{500};
inline constexpr std::chrono::milliseconds kLongestGateLease{600'000};

std::string leased_key(std::string_view plan);
std::string to_text(const LeasedGate& gate);
/// Returns nullopt unless `text` is exactly a text of to_text(). `why` gets the reason.
std::optional<LeasedGate> parse_leased_gate(std::string_view text, std::string* why = nullptr);

/// The note beside the gate: no token above that number was shown. It outlives a lost gate.
std::string ceiling_key(std::string_view plan);
std::string ceiling_text(std::uint64_t ceiling);
/// Returns nullopt unless `text` is one of ceiling_text(). `why` gets the reason.
std::optional<std::uint64_t> parse_ceiling(std::string_view text, std::string* why = nullptr);

/// Until when a reading counts whose request was sent at `sent`, by the reader's clock.
TimePoint counts_until(TimePoint sent, std::chrono::milliseconds lease);
/// Returns how long a version must exist, by the waiter's clock, until no reading of an older one
/// counts.
Duration turn_wait(std::chrono::milliseconds lease);

/// Returns the gate after a turn. A turn from "both" to one store makes the ceiling the floor
/// there, above the clock. Returns nullopt if no token is left above the floor.
std::optional<LeasedGate> turned_to(const LeasedGate& gate, LeasedState state,
                                    std::int64_t wall_clock_ms);
/// Returns the gate with a ceiling of at least `token`.
LeasedGate with_room_for(const LeasedGate& gate, std::uint64_t token);
/// Returns a floor that is at least `highest` and above all clocks.
/// Returns nullopt if no token is left.
std::optional<std::uint64_t> floor_above(std::uint64_t highest, std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
