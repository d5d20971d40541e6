// SPDX-License-Identifier: Apache-2.0
//
// What a migration is about, as `dlock migrate start` publishes it in both stores: which names,
// from where to where. Pure.
//
// Notes (Backend::note), in both stores:
//   plan/NAME   the plan's text
//   plans-out   `NAME@ID` of unfinished plans that leave this store; `~NAME@ID` of one whose start
//               has not come to its end
//   plans-in    `NAME@ID` of unfinished plans that come to it: who knows this store alone must not
//               lock their names in it; and `=NAME` of each in mode move that is finished:
//               whoever locks their names in it passes the floor of home/NAME
//   gate/NAME   in the source, of a plan in mode move (gate.hpp)
//   home/NAME   in the target, when all is over: its locks are at home there
//   plans-left, plans-came: what finished plans of mode dual have left behind (departures.hpp)
//   window/NAME of mode dual: which phases are admitted, and who takes part (window.hpp)
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
  std::string id;  ///< 16 hexadecimal digits, of this start: tells two stores of one name apart
  std::string from;
  std::string to;
  std::chrono::milliseconds max_lease{0};  ///< the longest lease of a hold in the target; 0: none
  /// The target can forget a lock that is held: a rollback waits max_lease.
  bool lossy_target = false;
  /// The target's holders have a lease, or a session: they are over max_lease after it has died.
  bool leased_target = true;
  /// Exact lock names of mode dual, sorted and distinct. Mode move has patterns alone.
  std::vector<std::string> names;
  /// Patterns that the plan governs, sorted and distinct; mode move has one at least. An exact name
  /// is a pattern without wildcards. A lock that is created later belongs to the plan, too.
  std::vector<std::string> patterns;
  /// Floor of a finished plan in mode move: tokens of the target are above it.
  std::uint64_t floor = 0;

  MigrateMode mode = MigrateMode::move;
  // Of mode dual.
  std::string window;                         ///< the store that keeps the window
  std::chrono::milliseconds registration{0};  ///< the lease of one

  /// Exactly, or by a pattern.
  bool has(std::string_view lock) const;
  /// The parts that every lock of it begins with, to list no others: `a/b` of `a/b/**` and
  /// `a/b/c`; empty: there are none.
  std::string prefix() const;
  bool operator==(const Plan&) const = default;
};

std::string to_text(const Plan& plan);
/// Empty unless it is exactly what to_text() writes; `why` (if given) then says what is wrong.
std::optional<Plan> parse_plan(std::string_view text, std::string* why = nullptr);

/// A note may have 64 KiB: some hundreds or thousands of names.
inline constexpr std::size_t kLongestPlan = 65'000;

std::string plan_key(std::string_view plan);
std::string home_key(std::string_view plan);
inline constexpr std::string_view kPlansOut = "plans-out";
inline constexpr std::string_view kPlansIn = "plans-in";

/// Returns the entry of kPlansIn for a finished plan in mode move.
std::string finished_entry(std::string_view plan);
bool is_finished_entry(std::string_view entry) noexcept;
/// Of an unfinished plan, by this start of it.
std::string started_entry(const Plan& plan);
/// Of kPlansOut: its start has not come to its end. Nothing of it is in effect, and no plan that
/// has a name in common with it is started.
std::string pending_entry(const Plan& plan);
bool is_pending_entry(std::string_view entry) noexcept;
/// The plan that an entry is about.
std::string plan_of_entry(std::string_view entry);
/// Whether it is about that start of that plan, or says no more than the plan.
bool is_about(std::string_view entry, const Plan& plan);
/// Whether a list has the plan as unfinished, and started.
bool lists_started(const std::vector<std::string>& entries, std::string_view plan);

/// A note that lists words or lock names, one a line; sorted and distinct.
std::string list_text(std::vector<std::string> entries);
std::vector<std::string> parse_list(std::string_view text);
std::vector<std::string> with_entry(std::vector<std::string> entries, const std::string& entry);
std::vector<std::string> without_entry(std::vector<std::string> entries, const std::string& entry);

/// A name, or a pattern, by which both plans have a lock; empty if they surely have none in common.
std::optional<std::string> common_names(const Plan& one, const Plan& other);

/// Why nothing of a plan is done whose start did not come to its end, for messages.
std::string start_broken_off(std::string_view plan);

/// The YAML line of a client that takes part in mode move, for messages.
std::string route_line(std::string_view lock, std::string_view from, std::string_view to,
                       std::string_view plan);
/// Of mode dual.
std::string route_line(std::string_view lock, const Plan& plan, int phase);
/// Returns the route of a program that locks in one store only, as after a plan's end.
std::string store_line(std::string_view lock, std::string_view store);

}  // namespace dlock::core::migration
