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
#include "migration/goal.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

enum class Action {
  nothing,   ///< it is there
  seal,      ///< lock S; MOVED in the lock's place
  close,     ///< MOVED -> CLOSING
  open,      ///< drain T; CLOSING -> OPEN
  abort,     ///< CLOSING -> MOVED
  give_way,  ///< another command has turned the plan's gate meanwhile
  refuse,
};

struct Decision {
  Action action = Action::refuse;
  std::string why;  ///< of refuse and give_way: what is wrong and what to do
};

/// `goal`: advance or rollback; a plan is finished as a whole, by its gate. No record: OPEN.
Decision decide(Goal goal, const std::optional<Record>& record, const Plan& plan);

/// The same while the gate is so: what must not be done then is refused. `for_all`: the gate was
/// turned for this goal.
Decision under_gate(Goal goal, Decision decision, const std::optional<Gate>& gate, const Plan& plan,
                    bool for_all);

/// The first record of a flip that was made under the source's `token`.
Record moved_record(const Plan& plan, std::uint64_t token, std::int64_t wall_clock_ms);

/// The record that closes the target's place, drained under `token`, for the rollback of `closing`.
Record closed_record(const Plan& plan, const Record& closing, std::uint64_t token,
                     std::int64_t wall_clock_ms);

}  // namespace dlock::core::migration
