// SPDX-License-Identifier: Apache-2.0
#include "migration/move/steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/sequencer.hpp"

namespace dlock::core::migration {
namespace {

Decision refusal(std::string why) { return {Action::refuse, std::move(why)}; }
Decision take(Action action) { return {action, {}}; }
Decision overtaken(const Plan& plan) {
  return {Action::give_way,
          fmt::format("another command has turned the gate of plan '{}' meanwhile; run it again",
                      plan.name)};
}

Decision decide_open(Goal goal, const Plan& plan) {
  switch (goal) {
    case Goal::advance:
      return take(Action::seal);
    case Goal::rollback:
      return take(Action::nothing);
    case Goal::finish:
      break;
  }
  return refusal(fmt::format("it is still in '{}'; run `dlock migrate advance {} --all` first",
                             plan.from, plan.name));
}

Decision decide_moved(Goal goal) {
  switch (goal) {
    case Goal::advance:
      return take(Action::nothing);
    case Goal::rollback:
      return take(Action::close);
    case Goal::finish:
      break;
  }
  return take(Action::make_final);
}

Decision decide_closing(Goal goal, const Plan& plan) {
  switch (goal) {
    case Goal::advance:
      return take(Action::abort);
    case Goal::rollback:
      return take(Action::open);
    case Goal::finish:
      break;
  }
  return refusal(
      fmt::format("a rollback is under way; end it with `dlock migrate rollback {0} --all`, or "
                  "take it back with `dlock migrate advance {0} --all`",
                  plan.name));
}

Decision decide_final(Goal goal, const Plan& plan) {
  if (goal != Goal::rollback) return take(Action::nothing);
  return refusal(
      fmt::format("it is finished and at home in '{0}'; going back is a plan of its own, "
                  "from '{0}' to '{1}'",
                  plan.to, plan.from));
}

}  // namespace

Decision decide(Goal goal, const std::optional<Record>& record, const Plan& plan) {
  if (!record) return decide_open(goal, plan);
  if (record->plan != plan.name || record->plan_id != plan.id || record->target != plan.to) {
    return refusal(
        fmt::format("plan '{}' has it, and it is {} there; finish that plan or roll it "
                    "back first",
                    record->plan, to_string(record->state)));
  }
  switch (record->state) {
    case MoveState::moved:
      return decide_moved(goal);
    case MoveState::closing:
      return decide_closing(goal, plan);
    case MoveState::final_:
      break;
  }
  return decide_final(goal, plan);
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
  Record record;
  record.state = MoveState::moved;
  record.gen = {token, 1};
  record.target = plan.to;
  record.floor = token;
  record.max_lease = plan.max_lease;
  record.plan = plan.name;
  record.plan_id = plan.id;
  record.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return record;
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
