// SPDX-License-Identifier: Apache-2.0
//
// The sentences that an operator of a migration reads: the next step, alarms and reports, in full.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dlock/error.hpp"
#include "dlock/spi/error.hpp"
#include "migration/dual/dual_report.hpp"
#include "migration/dual/dual_survey.hpp"
#include "migration/dual/window_watch.hpp"
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
  plan.window = "notes";
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

Window window_at(int lo, int hi) {
  Window window;
  window.plan = "p";
  window.from = "old";
  window.to = "new";
  window.lo = lo;
  window.hi = hi;
  window.ver = 1;
  window.lease = 10s;
  return window;
}

std::vector<Program> programs(std::vector<int> phases) {
  std::vector<Program> programs;
  for (const int phase : phases) {
    auto& program = programs.emplace_back();
    program.id = "0123abcd-4567";
    program.phase = phase;
    program.pid = 42;
    program.host = "web1";
    program.app = "app";
  }
  return programs;
}

DualStatus dual_status(Window window) {
  DualStatus status;
  status.plan = a_plan({"a/**"});
  status.window = std::move(window);
  status.laggards = laggards(*status.window);
  return status;
}

TEST(DualSentences, SayTheNextStep) {
  auto none = dual_status(window_at(0, 0));
  none.window.reset();
  EXPECT_EQ(next_step(none), "restore the window");
  EXPECT_EQ(next_step(dual_status(window_at(0, 0))),
            "`dlock migrate advance p`: open 1: programs with `phase: 1` are admitted");
  EXPECT_EQ(next_step(dual_status(window_at(1, 1))),
            "`dlock migrate advance p --legacy-gone`: open 2: programs with `phase: 2` are "
            "admitted");
  auto late = window_at(1, 1);
  late.programs = programs({0, 0, 1});
  EXPECT_EQ(next_step(dual_status(late)),
            "`dlock migrate advance p --legacy-gone`: open 2: programs with `phase: 2` are "
            "admitted; it waits for 2 of a phase that is closed, the first is app (pid 42 on web1, "
            "phase 0)");
  auto both = window_at(0, 1);
  both.programs = programs({0, 0, 1});
  EXPECT_EQ(
      next_step(dual_status(both)),
      "`dlock migrate advance p`: close 0: no program with `phase: 0` starts any more; 2 of 3 "
      "programs have `phase: 0` still");
  EXPECT_EQ(next_step(dual_status(window_at(2, 2))),
            "the locks are in 'new' alone; make it final with `dlock migrate finish p`, or go back "
            "with `dlock migrate rollback p`");
  auto finished = window_at(2, 2);
  finished.finished = true;
  EXPECT_EQ(next_step(dual_status(finished)),
            "nothing: it is finished; write `store: new`, program by program");
}

TEST(DualSentences, NameTheProgramsThatAStepWaitsFor) {
  const auto patience = seconds_text(WindowWatch::patience(10s));
  EXPECT_EQ(seconds_text(3140ms), "3.1 s");
  const std::string one = "app (pid 42 on web1, phase 0)";
  const auto window = window_at(0, 1);
  auto report = waiting_for(WindowAction::close_below, window, programs({0}));
  EXPECT_EQ(report.verdict, Verdict::waiting);
  EXPECT_EQ(report.window, window);
  EXPECT_EQ(report.waits_for.size(), 1U);
  EXPECT_EQ(report.text, "waits for a program of phase 0, which is to be closed: " + one +
                             "; restart it with `phase: 1`. One that has died is over " + patience +
                             " after it was first seen so: give --wait more than that");
  report = waiting_for(WindowAction::close_above, window, programs({0, 0, 0}));
  EXPECT_EQ(report.text, "waits for 3 programs of phase 1, which is to be closed: " + one + "; " +
                             one + "; " + one +
                             "; restart them with `phase: 0`. One that has "
                             "died is over " +
                             patience + " after it was first seen so: give --wait more than that");
  report = waiting_for(WindowAction::open_above, window, programs({0, 0, 0, 0}));
  EXPECT_EQ(report.text, "waits for 4 programs of a phase that is closed: " + one + "; " + one +
                             "; " + one +
                             "; and 1 more; restart them with `phase: 0 and 1`. One "
                             "that has died is over " +
                             patience + " after it was first seen so: give --wait more than that");
  report = waiting_to_withdraw(a_plan({}), window, programs({0}));
  EXPECT_EQ(report.text,
            "before plan 'p' is withdrawn, waits for a program that takes part: " + one +
                "; end it, or start it with `store: old` instead of `migrate`. "
                "One that has died is over " +
                patience + " after it was first seen so: give --wait more than that");
  EXPECT_EQ(report.waits_for.size(), 1U);
  report = waiting_to_withdraw(a_plan({}), window, programs({0, 0}));
  EXPECT_EQ(report.text, "before plan 'p' is withdrawn, waits for 2 programs that take part: " +
                             one + "; " + one +
                             "; end them, or start them with `store: old` "
                             "instead of `migrate`. One that has died is over " +
                             patience + " after it was first seen so: give --wait more than that");
}

TEST(DualSentences, SayWhyAStepIsRefused) {
  const auto unreachable = make_error_code(errc::unavailable);
  EXPECT_EQ(dual_report(Failure{unreachable, ""}).text, unreachable.message());
  EXPECT_EQ(dual_report(Failure{unreachable, ""}).verdict, Verdict::unreachable);
  EXPECT_EQ(dual_report(make_failure(errc::closed, "why")).verdict, Verdict::unreachable);
  EXPECT_EQ(dual_report(make_failure(errc::closed, "why")).text, "why");
  EXPECT_EQ(dual_report(make_failure(errc::protocol, "why")).verdict, Verdict::refused);
  EXPECT_EQ(no_window(a_plan({})).verdict, Verdict::refused);
  EXPECT_EQ(
      no_window(a_plan({})).text,
      "the store 'notes' has no window of plan 'p': it was not started, or the window is lost "
      "and nobody can lock; run `dlock migrate start p`, with `--at LO,HI` if it was started "
      "before");
  const auto gone = [](WindowAction action, int at) {
    return legacy_not_gone(a_plan({}), action, window_at(at, at)).text;
  };
  EXPECT_EQ(gone(WindowAction::open_above, 1),
            "programs of phase 2 do not meet clients that lock 'old' alone and are not registered "
            "(without this plan in their routes, or of another make): end them, then say so with "
            "--legacy-gone");
  EXPECT_TRUE(gone(WindowAction::open_below, 1)
                  .starts_with("programs of phase 0 do not meet clients that lock 'new' alone"));
  EXPECT_EQ(still_watching(window_at(1, 1), 500ms, 2s).text,
            "no client was seen that is not registered, for 0.5 s of 2.0 s; give --wait more than "
            "2.0 s");
  EXPECT_EQ(moved_by_another(window_at(0, 1)).text,
            "another command has moved the window meanwhile: programs of phase 0 and 1 are "
            "admitted");
  EXPECT_EQ(moved_by_another(window_at(0, 1)).verdict, Verdict::done);
}

TEST(DualSentences, NameStrangers) {
  Stranger holds{"old", "a/1", owner("app"), false};
  EXPECT_EQ(describe(holds), "app (pid 42 on web1) holds 'a/1' in 'old' and is not registered");
  const Stranger waits{"new", "a/2", {"session-5", "", 0, ""}, true};
  EXPECT_EQ(describe(waits), "session-5 waits for 'a/2' in 'new' and is not registered");
  EXPECT_EQ(describe(Stranger{"new", "a/2", {}, false}),
            "somebody holds 'a/2' in 'new' and is not registered");
  const auto report = strangers_seen(window_at(1, 1), {holds, waits}, 2s);
  EXPECT_EQ(report.verdict, Verdict::refused);
  EXPECT_EQ(report.strangers.size(), 2U);
  EXPECT_EQ(report.text, describe(holds) + "; " + describe(waits) +
                             ": end it, or give it this plan's route; then run it again, and it "
                             "watches for 2.0 s that nobody is left");
  auto other = holds;
  other.waits = true;
  EXPECT_TRUE(is_same(holds, other));
  other.owner.id = "another";
  EXPECT_FALSE(is_same(holds, other));
  other = holds;
  other.lock = "a/2";
  EXPECT_FALSE(is_same(holds, other));
  other = holds;
  other.store = "new";
  EXPECT_FALSE(is_same(holds, other));
}

}  // namespace
}  // namespace dlock::core::migration
