// SPDX-License-Identifier: Apache-2.0
#include "migration/move/steps.hpp"

#include <fmt/format.h>

namespace dlock::core::migration {
namespace {

Decision refusal(std::string why) { return {Action::refuse, std::move(why)}; }
Decision take(Action action) { return {action, {}}; }
Decision overtaken(const Plan& plan) {
  return {Action::give_way,
          fmt::format("another command has turned the gate of plan '{}' meanwhile; run it again",
                      plan.name)};
}

}  // namespace

Decision decide(Goal goal, const std::optional<Record>& record, const Plan& plan) {
  const bool back = goal == Goal::rollback;
  if (!record) return take(back ? Action::nothing : Action::seal);
  const bool is_own =
      record->plan == plan.name && record->plan_id == plan.id && record->target == plan.to;
  // No plan makes a record FINAL in its source.
  if (!is_own || record->state == MoveState::final_) {
    return refusal(
        fmt::format("plan '{}' has it, and it is {} there; finish that plan or roll it "
                    "back first",
                    record->plan, to_string(record->state)));
  }
  if (record->state == MoveState::moved) return take(back ? Action::close : Action::nothing);
  return take(back ? Action::open : Action::abort);
}

Decision under_gate(Goal goal, Decision decision, const std::optional<Gate>& gate, const Plan& plan,
                    bool for_all) {
  if (decision.action == Action::nothing) return decision;
  if (!gate) return refusal(start_broken_off(plan.name));
  switch (gate->state) {
    case GateState::open:
      if (!for_all || goal == Goal::rollback) return decision;
      return overtaken(plan);
    case GateState::turned:
      if (goal != Goal::rollback) return decision;
      if (for_all) return overtaken(plan);
      return refusal(fmt::format(
          "all locks of plan '{0}' go to '{1}' now, those made later too; `dlock migrate "
          "rollback {0} --all` brings them back",
          plan.name, plan.to));
    case GateState::ended:
      if (goal == Goal::rollback) return decision;
      return refusal(
          fmt::format("plan '{0}' is being withdrawn: end that with `dlock migrate "
                      "rollback {0} --all --withdraw`",
                      plan.name));
    case GateState::final_:
      break;
  }
  return refusal(
      fmt::format("plan '{0}' is finished, and its locks are at home in '{1}'; going back "
                  "is a plan of its own, from '{1}' to '{2}'",
                  plan.name, plan.to, plan.from));
}

Record moved_record(const Plan& plan, std::uint64_t token, std::int64_t wall_clock_ms) {
  return moved_record(opened_gate(plan, std::nullopt, wall_clock_ms), token, wall_clock_ms);
}

Record closed_record(const Plan& plan, const Record& closing, std::uint64_t token,
                     std::int64_t wall_clock_ms) {
  auto record = moved_record(plan, token, wall_clock_ms);
  record.state = MoveState::final_;
  record.gen = closing.gen;
  record.target = plan.from;
  record.max_lease = std::chrono::milliseconds(0);
  return record;
}

}  // namespace dlock::core::migration
