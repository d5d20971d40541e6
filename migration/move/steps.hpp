// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator does next for one name, by the record that stands there now. Pure: nothing is
// remembered between steps, so that any process may take the next one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "migration/gate.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

enum class Goal {
  advance,   ///< into the target: forward, or abort a rollback
  rollback,  ///< back into the source
  finish,    ///< for good
};

enum class Action {
  nothing,     ///< it is there
  seal,        ///< lock S; MOVED in the lock's place
  close,       ///< MOVED -> CLOSING
  open,        ///< drain T; CLOSING -> OPEN
  abort,       ///< CLOSING -> MOVED
  make_final,  ///< lock T; MOVED -> FINAL
  give_way,    ///< another command has turned the plan's gate meanwhile
  refuse,
};

struct Decision {
  Action action = Action::refuse;
  std::string why;  ///< of refuse and give_way: what is wrong and what to do
};

/// No record: OPEN.
Decision decide(Goal goal, const std::optional<Record>& record, const Plan& plan);

/// The same while the gate is so: what must not be done then is refused. `for_all`: the gate was
/// turned for this goal.
Decision under_gate(Goal goal, Decision decision, const std::optional<Gate>& gate, const Plan& plan,
                    bool for_all);

/// The first record of a flip that was made under the source's `token`.
Record moved_record(const Plan& plan, std::uint64_t token, std::int64_t wall_clock_ms);

/// Whether a target's record only closes it while the lock is in `source`: there a rollback, or an
/// earlier plan that went the other way and is finished (MOVED: it had a gate), has left it, so
/// that nobody locks in the target who knows it alone, or the earlier plan. It holds against every
/// record of the source that is not younger; whoever comes with a younger one may open the place.
bool is_closed(const Record& in_target, std::string_view source) noexcept;

/// The record that closes the target's place, drained under `token`, for the rollback of `closing`.
Record closed_record(const Plan& plan, const Record& closing, std::uint64_t token,
                     std::int64_t wall_clock_ms);

/// What the source is raised above when the target is gone for good and its tokens are not known.
/// Some stores seed them with the wall clock in microseconds, hence that; 2^48 more than anybody
/// can have counted. Empty: no room is left below 2^53.
std::optional<std::uint64_t> blind_floor(std::uint64_t floor, std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
