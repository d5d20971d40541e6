// SPDX-License-Identifier: Apache-2.0
//
// The sentences that an operator of a migration reads: the next step, alarms and reports, in full.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dlock/error.hpp"
#include "dlock/spi/error.hpp"
#include "migration/leased/leased_report.hpp"
#include "migration/move/survey.hpp"
#include "migration/step_report.hpp"

namespace dlock::core::migration {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

Plan a_plan(Texts patterns) {
  Plan plan;
  plan.name = "p";
  plan.id = "0123456789abcdef";
  plan.from = "old";
  plan.to = "new";
  plan.patterns = std::move(patterns);
  return plan;
}

Record record(MoveState state, Generation gen = {3, 4}) {
  Record record;
  record.state = state;
  record.gen = gen;
  record.target = "new";
  record.plan = "p";
  record.plan_id = "0123456789abcdef";
  return record;
}

NameStatus lock(std::optional<Record> record = std::nullopt) {
  NameStatus status;
  status.name = "a/1";
  status.known = true;
  status.record = std::move(record);
  return status;
}

Owner owner(std::string app) { return {"id-" + app, "web1", 42, std::move(app)}; }

PlanStatus status_of(Plan plan, std::vector<std::optional<MoveState>> states) {
  PlanStatus status;
  status.plan = std::move(plan);
  for (const auto& state : states) {
    status.names.push_back(lock(state ? std::optional(record(*state)) : std::nullopt));
  }
  return status;
}

const std::string kAllThere =
    "all are in 'new'; try it out, and go back with `dlock migrate rollback p --all`, or make it "
    "final with `dlock migrate finish p --all`";

TEST(MoveSentences, SayTheNextStepOfAFinishedPlan) {
  auto finished = status_of(a_plan({"a/**"}), {{}});
  finished.finished = true;
  EXPECT_EQ(next_step(finished),
            "nothing: it is finished; write `store: new` instead of `migrate`, program by program; "
            "'old' can be taken out of the configurations, and must be kept until none names it");
}

TEST(MoveSentences, SayTheNextStepOfAPlanWithAGate) {
  const auto next = [](std::optional<GateState> gate,
                       std::vector<std::optional<MoveState>> states) {
    auto status = status_of(a_plan({"a/**"}), std::move(states));
    if (gate) status.gate.emplace().state = *gate;
    return next_step(status);
  };
  EXPECT_EQ(next({}, {{}}), start_broken_off("p"));
  EXPECT_EQ(next(GateState::open, {{}, {}}),
            "all are in 'old'; `dlock migrate advance p --all` moves them, each when its holder "
            "leaves, and those made later");
  EXPECT_EQ(
      next(GateState::open, {{}, MoveState::moved}),
      "in 'new': 1 of 2; `dlock migrate advance p --all` moves all, those made later too, and "
      "`dlock migrate rollback p --all` brings these back");
  EXPECT_EQ(next(GateState::open, {MoveState::closing, MoveState::moved}),
            "on the way back, waiting for holders in 'new' to leave: 1 of 2; go on with `dlock "
            "migrate rollback p --all`, or take it back with `dlock migrate advance p --all`");
  EXPECT_EQ(
      next(GateState::turned, {MoveState::closing, {}, MoveState::moved}),
      "not in 'new' yet: 2 of 3, held or waited for in 'old' from before, or on the way back; "
      "`dlock migrate advance p --all` moves each when its holder leaves");
  EXPECT_EQ(next(GateState::turned, {MoveState::moved, MoveState::final_}), kAllThere);
  EXPECT_EQ(next(GateState::final_, {{}}),
            "the certificate: `dlock migrate finish p --all` was broken off; run it again");
  EXPECT_EQ(next(GateState::ended, {{}}),
            "it is being withdrawn: `dlock migrate rollback p --all --withdraw` ends that");
}

TEST(MoveSentences, RaiseAnAlarmForALockOnlyWhenItNeedsOne) {
  const auto plan = a_plan({"a/**"});
  const auto alarms = [&plan](const NameStatus& status, bool at_home = false) {
    return alarms_of(status, plan, at_home);
  };
  EXPECT_EQ(alarms(lock()), Texts());
  EXPECT_EQ(alarms(lock(record(MoveState::moved))), Texts());
  auto silent = lock();
  silent.known = false;
  EXPECT_EQ(alarms(silent), Texts{"the store 'old' did not answer"});
  auto unreadable = lock();
  unreadable.unreadable = "it is short";
  EXPECT_EQ(alarms(unreadable),
            Texts{"what stands in the lock's place cannot be read: it is short"});
  auto held = lock();
  held.in_target.emplace();
  EXPECT_EQ(alarms(held), Texts());
  held.in_target->held = true;
  EXPECT_EQ(alarms(held), Texts{"somebody holds it in 'new', though it is not moved: a client that "
                                "knows 'new' alone"});
  held.in_target->owner = owner("app");
  EXPECT_EQ(alarms(held), Texts{"app (pid 42 on web1) holds it in 'new', though it is not moved: a "
                                "client that knows 'new' alone"});
  EXPECT_EQ(alarms(held, true), Texts());
  auto foreign = lock(record(MoveState::moved));
  foreign.record->plan = "q";
  EXPECT_EQ(alarms(foreign), Texts{"the record is of plan 'q'"});
  foreign.record->plan = "p";
  foreign.record->plan_id = "1123456789abcdef";
  EXPECT_EQ(alarms(foreign), Texts{"the record is of plan 'p'"});
}

TEST(MoveSentences, RaiseAnAlarmForAPlaceInTheTargetThatIsNotOpen) {
  const auto alarm = [](NameStatus status) {
    const auto alarms = alarms_of(status, a_plan({"a/**"}));
    return alarms.empty() ? std::string() : alarms.front();
  };
  auto status = lock();
  status.place.kind = TargetPlace::Kind::foreign;
  status.place.why = "it is full";
  EXPECT_EQ(alarm(status), "it is full; it cannot be moved to 'new'");
  status.record = record(MoveState::moved);
  EXPECT_EQ(alarm(status), "it is full; nobody can lock it there");
  status.place.kind = TargetPlace::Kind::closed;
  status.place.record = record(MoveState::final_, {3, 4});
  const std::string old_copy =
      "its place in 'new' was closed by a later rollback than the record in 'old' knows of: nobody "
      "can lock it; 'old' was restored from an old copy; stop its users, then bring its data back";
  EXPECT_EQ(alarm(status), old_copy);
  status.place.record->gen = {3, 5};
  EXPECT_EQ(alarm(status), old_copy);
  status.place.record->gen = {3, 3};
  status.place.record->plan = "before";
  EXPECT_EQ(alarm(status), "");
  status.record->state = MoveState::closing;
  EXPECT_EQ(alarm(status), "");
  status.record.reset();
  EXPECT_EQ(alarm(status), "");
}

TEST(MoveSentences, SayWhatIsInAPlaceOfTheTarget) {
  EXPECT_EQ(place_in("new", std::nullopt, "old").kind, TargetPlace::Kind::open);
  const auto unreadable = place_in("new", "x", "old");
  EXPECT_EQ(unreadable.kind, TargetPlace::Kind::foreign);
  EXPECT_TRUE(
      unreadable.why.starts_with("what stands in its place in the store 'new' cannot be read: "))
      << unreadable.why;
  const auto leads_on = place_in("new", to_text(record(MoveState::moved)), "old");
  EXPECT_EQ(leads_on.kind, TargetPlace::Kind::foreign);
  EXPECT_EQ(leads_on.why, "plan 'p' has it in the store 'new', where it is " +
                              std::string(to_string(MoveState::moved)) +
                              " and leads to 'new'; a lock goes back only the way it came");
}

TEST(MoveSentences, SayWhyAStepFailed) {
  const auto error = make_error_code(errc::unavailable);
  const auto step = failure_report("a/1", false, "old", error, {});
  EXPECT_EQ(step.verdict, Verdict::unreachable);
  EXPECT_EQ(step.text, "the store 'old': " + error.message());
  const auto refused = failure_report("a/1", true, "old", error, {error, "it is down"});
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_EQ(refused.text, "the store 'old': " + error.message() + ": it is down");
  EXPECT_EQ(describe(owner("app")), "app (pid 42 on web1)");
  EXPECT_EQ(describe(owner("")), "a process (pid 42 on web1)");
  EXPECT_EQ(describe(Owner{"id", "web1", 0, "app"}), "id");
}

LeasedGate gate_at(LeasedState state) {
  LeasedGate gate;
  gate.plan = "p";
  gate.from = "old";
  gate.to = "new";
  gate.state = state;
  gate.lease = 10s;
  return gate;
}

TEST(LeasedSentences, SayWhereLocksAreAcquired) {
  const auto places = [](LeasedState state) { return places_of(gate_at(state)); };
  EXPECT_EQ(places(LeasedState::source), "locks are acquired in 'old'");
  EXPECT_EQ(places(LeasedState::ended), "locks are acquired in 'old'");
  EXPECT_EQ(places(LeasedState::source_then_target), "locks are acquired in 'old', then in 'new'");
  EXPECT_EQ(places(LeasedState::target_then_source), "locks are acquired in 'new', then in 'old'");
  EXPECT_EQ(places(LeasedState::target), "locks are acquired in 'new'");
  EXPECT_EQ(places(LeasedState::final_), "locks are acquired in 'new'");
}

TEST(LeasedSentences, SayWhyACommandTurnsNothing) {
  const auto why = [](Goal goal, LeasedState state, bool withdraws = false) {
    return next_turn(goal, gate_at(state), withdraws).why;
  };
  EXPECT_EQ(why(Goal::advance, LeasedState::ended), "plan 'p' was withdrawn");
  EXPECT_EQ(why(Goal::advance, LeasedState::final_), "locks are acquired in 'new'");
  EXPECT_EQ(why(Goal::rollback, LeasedState::source), "locks are acquired in 'old'");
  EXPECT_EQ(
      why(Goal::rollback, LeasedState::final_),
      "plan 'p' is finished and cannot be rolled back; start another plan from 'new' to 'old'");
  EXPECT_EQ(why(Goal::finish, LeasedState::source_then_target),
            "locks are acquired in 'old', then in 'new'; run `dlock migrate advance p "
            "--legacy-gone` first");
}

TEST(LeasedSentences, EachStateAndGoalHasOneTurn) {
  using What = Turn::What;
  struct Case {
    Goal goal;
    LeasedState state;
    What what;
    LeasedState to;
    bool waits;
  };
  using S = LeasedState;
  const Case cases[] = {{Goal::advance, S::source, What::turn, S::source_then_target, false},
                        {Goal::advance, S::source_then_target, What::turn, S::target, true},
                        {Goal::advance, S::target_then_source, What::turn, S::target, false},
                        {Goal::advance, S::target, What::nothing, S::source, false},
                        {Goal::advance, S::final_, What::nothing, S::source, false},
                        {Goal::advance, S::ended, What::refuse, S::source, false},
                        {Goal::rollback, S::source_then_target, What::turn, S::source, false},
                        {Goal::rollback, S::target, What::turn, S::target_then_source, false},
                        {Goal::rollback, S::target_then_source, What::turn, S::source, true},
                        {Goal::rollback, S::source, What::nothing, S::source, false},
                        {Goal::rollback, S::ended, What::nothing, S::source, false},
                        {Goal::rollback, S::final_, What::refuse, S::source, false},
                        {Goal::finish, S::target, What::turn, S::final_, false},
                        {Goal::finish, S::final_, What::nothing, S::source, false},
                        {Goal::finish, S::source, What::refuse, S::source, false},
                        {Goal::finish, S::target_then_source, What::refuse, S::source, false}};
  for (const auto& one : cases) {
    SCOPED_TRACE(std::string(to_string(one.state)) + " " + std::to_string(int(one.goal)));
    const auto turn = next_turn(one.goal, gate_at(one.state), false);
    EXPECT_EQ(turn.what, one.what);
    EXPECT_EQ(turn.waits, one.waits);
    EXPECT_EQ(turn.to, one.to);
  }
  const auto end = next_turn(Goal::rollback, gate_at(S::source), true);
  EXPECT_EQ(end.what, What::turn);
  EXPECT_EQ(end.to, S::ended);
}

TEST(LeasedSentences, SayWhyACommandFailed) {
  const auto unreachable = make_error_code(errc::unavailable);
  EXPECT_EQ(leased_report(Failure{unreachable, ""}).text, unreachable.message());
  EXPECT_EQ(leased_report(Failure{unreachable, ""}).verdict, Verdict::unreachable);
  EXPECT_EQ(leased_report(make_failure(errc::closed, "why")).verdict, Verdict::unreachable);
  EXPECT_EQ(leased_report(make_failure(errc::closed, "why")).text, "why");
  EXPECT_EQ(leased_report(make_failure(errc::protocol, "why")).verdict, Verdict::refused);
  EXPECT_EQ(seconds_text(3140ms), "3.1 s");
}

TEST(LeasedSentences, NameStrangers) {
  const Stranger holds{"old", "a/1", owner("app"), false};
  EXPECT_EQ(describe(holds), "app (pid 42 on web1) holds 'a/1' in 'old' and does not take part");
  const Stranger waits{"new", "a/2", {"session-5", "", 0, ""}, true};
  EXPECT_EQ(describe(waits), "session-5 waits for 'a/2' in 'new' and does not take part");
  EXPECT_EQ(describe(Stranger{"new", "a/2", {}, false}),
            "somebody holds 'a/2' in 'new' and does not take part");
}

TEST(LeasedSentences, SayWhyAPlanCannotStart) {
  Capabilities keeps;
  keeps.can_seal = keeps.can_gate = keeps.can_raise = true;
  keeps.token = TokenStrength::durable;
  const auto why = [&](Capabilities from, Capabilities gate) {
    return leased_objections({"old", from, {}}, {"new", keeps, {}}, {"new", gate, {}});
  };
  EXPECT_EQ(why(keeps, keeps), Texts());
  auto forgets = keeps;
  forgets.record_losses = {{"appendonly is no", "set appendfsync to always"}};
  EXPECT_EQ(why(forgets, keeps), Texts()) << "the source may forget";
  EXPECT_EQ(why(keeps, forgets),
            Texts{"the store 'new' may lose the gate, and then no program acquires a lock; write "
                  "`gate: STORE` with a store that forgets nothing; appendonly is no: set "
                  "appendfsync to always"});
  auto no_tokens = keeps;
  no_tokens.can_raise = false;
  no_tokens.token = TokenStrength::none;
  EXPECT_EQ(why(no_tokens, keeps),
            (Texts{"the store 'old' cannot raise its tokens, so they would not rise across the "
                   "migration",
                   "the store 'old' has no fencing tokens"}));
}

}  // namespace
}  // namespace dlock::core::migration
