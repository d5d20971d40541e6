// SPDX-License-Identifier: Apache-2.0
//
// The next step of a coordinator for one lock, by the lock's present record. Pure: no state remains
// between steps, so that any process can carry out the next one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "migration/gate.hpp"
#include "migration/goal.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

enum class Action {
  nothing,   ///< the goal is reached
  seal,      ///< lock S; MOVED in the lock's place
  close,     ///< MOVED -> CLOSING
  open,      ///< drain T; CLOSING -> OPEN
  abort,     ///< CLOSING -> MOVED
  give_way,  ///< another command has turned the plan's gate meanwhile
  refuse,
};

struct Decision {
  Action action = Action::refuse;
  std::string why;  ///< with refuse and give_way: the reason and the remedy
};

/// Returns the step of `advance` or `rollback`. `finish` has none: the gate finishes all locks.
/// Without a record the lock is OPEN.
Decision decide(Goal goal, const std::optional<Record>& record, const Plan& plan);

/// Returns the decision, or a refusal if the gate forbids the step. `for_all`: the gate was turned
/// for this goal.
Decision under_gate(Goal goal, Decision decision, const std::optional<Gate>& gate, const Plan& plan,
                    bool for_all);

/// Returns the first record of a flip under the source's `token`.
Record moved_record(const Plan& plan, std::uint64_t token, std::int64_t wall_clock_ms);

/// Returns the record that closes the target for the rollback of `closing`. The target was drained
/// under `token`.
Record closed_record(const Plan& plan, const Record& closing, std::uint64_t token,
                     std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
