// SPDX-License-Identifier: Apache-2.0
//
// Plan: the locks that a migration governs, and the stores between which they move. `dlock migrate
// start` publishes its text in both stores. Pure.
//
// Notes (MigrationStore::note) of a store:
//   plan/NAME   the plan's text, in both stores
//   plans-out   `NAME@ID` of unfinished plans with this store as the source; `~NAME@ID` while the
//               start is not complete
//   plans-in    `NAME@ID` of unfinished plans with this store as the target: a client that knows
//               this store alone must not lock their names. `=NAME` of finished plans:
//               tokens of their names are above the floor of home/NAME
//   gate/NAME   the gate of a plan in mode move, in the source (gate.hpp)
//   home/NAME   the certificate of a finished plan, in the target
//   plans-left  the finished plans with this store as the source (departures.hpp)
//   plans-came  the finished plans with this store as the target
//   leased/NAME the leased gate of a plan that has one (leased/leased_gate.hpp)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/config.hpp"

namespace dlock::core::migration {

struct Plan {
  std::string name;
  std::string id;  ///< 16 hexadecimal digits of one start; identifies the target store
  std::string from;
  std::string to;
  /// The longest lease of a hold in the target. 0: the target has no leases.
  std::chrono::milliseconds max_lease{0};
  /// The target can forget a lock that is held: a rollback waits max_lease.
  bool lossy_target = false;
  /// The target's holders have a lease, or a session: they are over max_lease after it has died.
  bool leased_target = true;
  /// Patterns that the plan governs, one at least, sorted and distinct. An exact name is a pattern
  /// without wildcards. A lock that is created later belongs to the plan, too.
  std::vector<std::string> patterns;
  /// Floor of a finished plan: tokens of the target are above it.
  std::uint64_t floor = 0;
  std::string gate;                    ///< the store that keeps a leased gate; empty: mode move
  std::chrono::milliseconds lease{0};  ///< of the readings of a leased gate

  bool is_leased() const noexcept { return !gate.empty(); }

  /// Returns whether the plan governs `lock`.
  bool has(std::string_view lock) const;
  /// Returns the parts with which each lock of the plan begins: `a/b` of `a/b/**` and `a/b/c`.
  /// A list of these locks reads no others. May be empty.
  std::string prefix() const;
  bool operator==(const Plan&) const = default;
};

std::string to_text(const Plan& plan);
/// Returns nullopt unless `text` is exactly a text of to_text(). `why` gets the reason.
std::optional<Plan> parse_plan(std::string_view text, std::string* why = nullptr);

/// Unit: bytes. A note has room for 64 KiB.
inline constexpr std::size_t kLongestPlan = 65'000;

std::string plan_key(std::string_view plan);
std::string home_key(std::string_view plan);
inline constexpr std::string_view kPlansOut = "plans-out";
inline constexpr std::string_view kPlansIn = "plans-in";

/// Returns the entry of kPlansIn for a finished plan.
std::string finished_entry(std::string_view plan);
bool is_finished_entry(std::string_view entry) noexcept;
/// Returns the entry of an unfinished plan, with the id of its start.
std::string started_entry(const Plan& plan);
/// Returns the entry of kPlansOut for a plan whose start is not complete. The plan is not in
/// effect. No plan with a common name can start.
std::string pending_entry(const Plan& plan);
bool is_pending_entry(std::string_view entry) noexcept;
/// Returns the name of the entry's plan.
std::string plan_of_entry(std::string_view entry);
/// Returns whether the entry names that start of the plan, or the plan without an id.
bool is_about(std::string_view entry, const Plan& plan);
/// Returns whether a list has the plan as unfinished, with a complete start.
bool lists_started(const std::vector<std::string>& entries, std::string_view plan);

/// Returns the refusal of a plan's text that a newer dlock wrote. Empty: the text is not newer.
std::string newer_plan(std::string_view text);

/// The first line of a note that lists plans, before the number of its format.
inline constexpr std::string_view kListStamp = "dlock-plans";

/// Returns the entries, sorted and distinct.
std::vector<std::string> sorted(std::vector<std::string> entries);
/// Returns the text of a note: the entries below `dlock-plans1`, sorted and distinct. Returns an
/// empty text for no entries.
std::string list_text(std::vector<std::string> entries);
/// Returns nullopt unless `text` is a text of list_text(). `why` gets the reason.
std::optional<std::vector<std::string>> parse_list(std::string_view text,
                                                   std::string* why = nullptr);
std::vector<std::string> with_entry(std::vector<std::string> entries, const std::string& entry);
std::vector<std::string> without_entry(std::vector<std::string> entries, const std::string& entry);

/// Returns a name or a pattern that both plans may govern. Empty: they have no lock in common.
std::optional<std::string> common_names(const Plan& one, const Plan& other);

/// Returns the message about a plan whose start is not complete.
std::string start_broken_off(std::string_view plan);

/// Returns the YAML line for clients of the plan, for messages. `gate`: empty in mode move.
std::string route_line(std::string_view lock, std::string_view from, std::string_view to,
                       std::string_view plan, std::string_view gate = {});
std::string route_line(std::string_view lock, const Plan& plan);
/// Returns the route of a program that locks in one store only, as after a plan's end.
std::string store_line(std::string_view lock, std::string_view store);

}  // namespace dlock::core::migration
