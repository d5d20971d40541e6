// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator of mode dual does next, by the window alone; and whether a plan in mode dual
// can be at all. Pure: nothing is remembered between steps.
//
//   forward   open 1, close 0, open 2, close 1: {0,0} {0,1} {1,1} {1,2} {2,2}
//   rollback  the same way back, from anywhere
//   finish    from {2,2}
//
// Closing is done at any time: programs of that phase go on, and none of them registers any more.
// Opening waits until no registration lies outside the window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dlock/clock.hpp"
#include "migration/dual/window.hpp"
#include "migration/eligibility.hpp"
#include "migration/goal.hpp"

namespace dlock::core::migration {

enum class WindowAction {
  nothing,  ///< it is there
  open_above,
  open_below,
  close_above,
  close_below,
  finish,
  refuse,
};

struct WindowDecision {
  WindowAction action = WindowAction::refuse;
  std::string why;  ///< of refuse and nothing: a sentence for the operator
};

/// One step towards the goal.
WindowDecision decide(Goal goal, const Window& window);

bool is_opening(WindowAction action) noexcept;
/// The phase that an opening admits; the one that a closing shuts out.
int phase_of(WindowAction action, const Window& window) noexcept;
/// Opening 2 admits programs that source-only clients do not meet; opening 0 those that target-only
/// clients do not meet: clients that are not registered must be gone, and only the operator knows.
bool needs_legacy_gone(WindowAction action, const Window& window) noexcept;

/// The window after the step. `floor`: of an opening, the highest token known in both stores.
/// Registrations `over` are taken away.
Window stepped(const Window& window, WindowAction action, std::uint64_t floor,
               const std::vector<std::string>& over, std::int64_t wall_clock_ms);

/// The floor of a window that was lost, and with it what its programs had given out: `highest` is
/// what the stores can tell of, and they are asked for exact names alone. Empty: no room is left
/// below 2^53.
std::optional<std::uint64_t> restored_floor(const Plan& plan, std::uint64_t highest,
                                            std::int64_t wall_clock_ms);

/// For how long no unregistered client may have been seen before phases are opened that do not meet
/// it: twice the longest lease, and a second at least.
Duration quiet_period(const Plan& plan);

/// Whether the plan can be taken away as if it had never been, once nobody is registered.
bool can_withdraw(const Window& window) noexcept;
/// Why not.
std::string still_admits(const Window& window);

/// Admitted with `lo..hi`: "0", "0 and 1".
std::string phases_text(int lo, int hi);
/// `open 2: programs of phase 2 are admitted`
std::string action_text(WindowAction action, const Window& window);

/// Why locks cannot be taken from one store to another in mode dual, each with what to change.
/// `window`: where its note is to be.
std::vector<std::string> dual_objections(const End& from, const End& to, const End& window);
/// What the plan says of leases and target, which the ends decide. `max_lease`, `registration`: the
/// operator's.
void describe_dual(Plan& plan, const End& from, const End& to,
                   std::optional<std::chrono::milliseconds> max_lease,
                   std::optional<std::chrono::milliseconds> registration);

}  // namespace dlock::core::migration
