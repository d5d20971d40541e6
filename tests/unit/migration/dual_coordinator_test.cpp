// SPDX-License-Identifier: Apache-2.0
//
// The window's steps, and what each waits for.
#include <gtest/gtest.h>

#include "migration/ledger.hpp"
#include "tests/support/dual_fleet.hpp"

namespace dlock::tests {
namespace {

using core::migration::DualLedger;
using core::migration::Goal;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DualCoordinating : public testing::Test {
 protected:
  DualCoordinating() { fleet_.start(); }

  std::pair<int, int> window() const { return {fleet_.window().lo, fleet_.window().hi}; }
  /// Steps that must be done.
  void step(Goal goal, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const auto report = fleet_.take(goal);
      EXPECT_EQ(report.verdict, Verdict::done) << report.text;
    }
  }
  std::uint64_t grant(DualFleet::Member& member, const std::string& name) {
    auto got = fleet_.acquire(member, name);
    EXPECT_TRUE(got->handle) << got->ec.message() << " " << got->diagnostics.server_text;
    const auto token = got->handle ? got->handle.token().value_or(0) : 0;
    fleet_.let_go(*got);
    return token;
  }
  /// Somebody of another make locks in one store alone.
  void lock_as_stranger(const std::shared_ptr<memory::SharedStore>& server,
                        const std::string& name) {
    Owner owner;
    owner.id = "11111111-2222-4333-8444-555555555555";
    owner.pid = 77;
    owner.host = "far";
    owner.app = "curator";
    server->claim(name, owner, true, 0, {}, [] {});
  }

  DualFleet fleet_;
};

using P = std::pair<int, int>;

TEST_F(DualCoordinating, ForwardPhaseByPhaseFinishAndTheTokensRise) {
  EXPECT_EQ(window(), P(0, 0));
  auto zero = fleet_.program(0);
  auto last = grant(zero, "a");
  step(Goal::advance);
  EXPECT_EQ(window(), P(0, 1));
  auto one = fleet_.program(1);
  auto next = grant(one, "a");
  EXPECT_GT(next, last);
  last = grant(zero, "a");
  EXPECT_GT(last, next);
  step(Goal::advance);
  EXPECT_EQ(window(), P(1, 1));
  fleet_.stop(zero);
  step(Goal::advance);
  EXPECT_EQ(window(), P(1, 2));
  auto two = fleet_.program(2);
  next = grant(two, "a");
  EXPECT_GT(next, last);
  last = grant(one, "a");
  EXPECT_GT(last, next);
  step(Goal::advance);
  EXPECT_EQ(window(), P(2, 2));
  EXPECT_GT(grant(two, "a"), last);
  EXPECT_TRUE(has(fleet_.take(Goal::advance).text, "finish"));
  fleet_.stop(one);
  step(Goal::finish);
  EXPECT_TRUE(fleet_.window().finished);
  EXPECT_FALSE(fleet_.server_t->note("home/p1").empty());
  EXPECT_TRUE(fleet_.server_t->note("plans-in").empty());
  EXPECT_TRUE(fleet_.server_s->note("plans-out").empty());
  // Programs of phase 2 go on, and others start, for ever.
  grant(two, "a");
  fleet_.run_for(seconds(60));
  grant(two, "a");
  auto late = fleet_.program(2);
  grant(late, "b");
  step(Goal::finish);
  EXPECT_EQ(fleet_.take(Goal::rollback).verdict, Verdict::refused);
}

TEST_F(DualCoordinating, ARefusedStartAdmitsNobodyAndLeavesNoWindow) {
  const auto first = fleet_.plan;
  fleet_.plan.name = "p2";
  fleet_.plan.id = "00000000000000aa";
  auto early = fleet_.program(0);
  const auto report = fleet_.start();
  EXPECT_EQ(report.verdict, Verdict::refused);
  EXPECT_TRUE(has(report.text, "belongs to the unfinished plan 'p1'")) << report.text;
  EXPECT_EQ(fleet_.server_t->note("window/p2"), "");
  EXPECT_EQ(fleet_.server_t->note("plan/p2"), "");
  EXPECT_EQ(fleet_.try_acquire(early, "a")->ec, errc::not_registered);
  fleet_.plan = first;
}

// Its window stands there, closed: the command died before the plan was in the lists.
TEST_F(DualCoordinating, AStartThatWasBrokenOffAdmitsNobodyUntilItIsRunAgain) {
  auto window = fleet_.window();
  window.ver = 0;
  fleet_.set_window(window);
  auto zero = fleet_.program(0);
  const auto got = fleet_.try_acquire(zero, "a");
  EXPECT_EQ(got->ec, errc::not_registered);
  EXPECT_TRUE(has(got->diagnostics.server_text, "dlock migrate start p1"))
      << got->diagnostics.server_text;
  for (const auto goal : {Goal::advance, Goal::rollback, Goal::finish}) {
    const auto report = fleet_.take(goal);
    EXPECT_EQ(report.verdict, Verdict::refused);
    EXPECT_TRUE(has(report.text, "dlock migrate start p1")) << report.text;
  }
  EXPECT_EQ(fleet_.start().verdict, Verdict::done);
  EXPECT_TRUE(fleet_.window().is_open());
  grant(zero, "a");
}

TEST_F(DualCoordinating, BackAgainFromTheLastPhase) {
  step(Goal::advance, 4);
  auto two = fleet_.program(2);
  auto last = grant(two, "a");
  grant(two, "b");
  step(Goal::rollback);
  EXPECT_EQ(window(), P(1, 2));
  auto one = fleet_.program(1);
  const auto in_both = grant(one, "a");
  EXPECT_GT(in_both, last);
  step(Goal::rollback);
  EXPECT_EQ(window(), P(1, 1));
  const auto waits = fleet_.take(Goal::rollback, milliseconds(100));
  EXPECT_EQ(waits.verdict, Verdict::waiting);
  ASSERT_EQ(waits.waits_for.size(), 1U);
  EXPECT_EQ(waits.waits_for.front().phase, 2);
  last = grant(two, "b");  // it goes on meanwhile
  fleet_.stop(two);
  step(Goal::rollback);
  EXPECT_EQ(window(), P(0, 1));
  auto zero = fleet_.program(0);
  EXPECT_GT(grant(zero, "a"), in_both);
  EXPECT_GT(grant(zero, "b"), last);  // which phase 1 never locked
  step(Goal::rollback);
  EXPECT_EQ(window(), P(0, 0));
  step(Goal::rollback);
  EXPECT_EQ(window(), P(0, 0));
}

TEST_F(DualCoordinating, AnIdleNamesTokensStayBelowTheFloorOfThePhaseThatNeverMetThem) {
  auto zero = fleet_.program(0);
  std::uint64_t exact = 0;
  std::uint64_t made_later = 0;
  for (int i = 0; i < 20; ++i) exact = grant(zero, "b");
  for (int i = 0; i < 30; ++i) made_later = grant(zero, "more/7");
  fleet_.stop(zero);
  step(Goal::advance, 3);
  auto two = fleet_.program(2);
  EXPECT_GT(grant(two, "b"), exact);
  EXPECT_GT(grant(two, "more/7"), made_later);  // not listed, not held at the opening
}

TEST_F(DualCoordinating, TokensOfTheTimeBeforeThePlanCountForItsNames) {
  Owner owner;
  owner.id = "before";
  std::uint64_t before = 0;
  for (int i = 0; i < 50; ++i) {
    before = fleet_.server_s->claim("b", owner, true, 0, {}, [] {}).token;
    fleet_.server_s->release("b", "before");
  }
  step(Goal::advance, 3);
  auto two = fleet_.program(2);
  EXPECT_GT(grant(two, "b"), before);
}

TEST_F(DualCoordinating, AnOpeningWaitsForProgramsOfAClosedPhase) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  step(Goal::advance, 2);
  const auto report = fleet_.take(Goal::advance, seconds(20));
  EXPECT_EQ(report.verdict, Verdict::waiting);
  ASSERT_EQ(report.waits_for.size(), 1U);
  EXPECT_EQ(report.waits_for.front().id, zero.registrar->program());
  EXPECT_TRUE(has(report.text, "restart it with `phase: 1`")) << report.text;
  EXPECT_TRUE(has(report.text, "3.1 s")) << report.text;
  EXPECT_EQ(window(), P(1, 1));
  fleet_.stop(zero);
  step(Goal::advance);
  EXPECT_EQ(window(), P(1, 2));
}

TEST_F(DualCoordinating, AClosingWaitsIfAskedForTheProgramsThatItWouldShutOut) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  step(Goal::advance);
  auto options = fleet_.waiting(seconds(20));
  options.drain = true;
  std::vector<std::string> progress;
  options.on_progress = [&](const std::string& text) { progress.push_back(text); };
  const auto waits = fleet_.run(fleet_.coordinator(options)->take(Goal::advance), seconds(30));
  EXPECT_EQ(waits.verdict, Verdict::waiting);
  EXPECT_TRUE(has(waits.text, "phase 0, which is to be closed")) << waits.text;
  EXPECT_TRUE(has(waits.text, "restart it with `phase: 1`")) << waits.text;
  EXPECT_EQ(waits.waits_for.size(), 1U);
  EXPECT_EQ(progress.size(), 2U);  // at once, and every ten seconds
  EXPECT_EQ(window(), P(0, 1));
  fleet_.stop(zero);
  options.deadline = fleet_.env().now() + seconds(1);
  EXPECT_EQ(fleet_.run(fleet_.coordinator(options)->take(Goal::advance)).verdict, Verdict::done);
  EXPECT_EQ(window(), P(1, 1));
}

TEST_F(DualCoordinating, AStartThatDiedBeforeThePlansTextIsRepairedByARestoration) {
  for (const auto& server : {fleet_.server_s, fleet_.server_t}) {
    server->set_note("plan/p1", server->note("plan/p1"), "");
  }
  fleet_.lose_window();
  const auto restored = fleet_.start(P(0, 0));
  EXPECT_EQ(restored.verdict, Verdict::done) << restored.text;
  auto zero = fleet_.program(0);
  grant(zero, "a");
}

TEST_F(DualCoordinating, ADeadProgramIsWaitedForAWholeLeaseAndTakenAway) {
  const auto dead = fleet_.add_dead_program(0);
  step(Goal::advance, 2);
  EXPECT_EQ(fleet_.take(Goal::advance, seconds(2)).verdict, Verdict::waiting);
  const auto begun = fleet_.env().now();
  const auto report = fleet_.take(Goal::advance, seconds(10));
  EXPECT_EQ(report.verdict, Verdict::done) << report.text;
  EXPECT_GE(fleet_.env().now() - begun, Duration(milliseconds(3150)));
  EXPECT_EQ(fleet_.window().find(dead), nullptr);
  EXPECT_EQ(window(), P(1, 2));
}

TEST_F(DualCoordinating, OpeningTheLastPhaseNeedsTheOperatorsWord) {
  step(Goal::advance, 2);
  const auto refused = fleet_.take(Goal::advance, seconds(10), false);
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_TRUE(has(refused.text, "--legacy-gone")) << refused.text;
  EXPECT_EQ(window(), P(1, 1));
  EXPECT_EQ(fleet_.take(Goal::rollback, seconds(10), false).verdict, Verdict::refused);
}

TEST_F(DualCoordinating, AStrangerInTheSourceIsNamedAndNothingIsOpened) {
  step(Goal::advance, 2);
  lock_as_stranger(fleet_.server_s, "a");
  lock_as_stranger(fleet_.server_s, "more/7");
  lock_as_stranger(fleet_.server_s, "not/of/the/plan");
  const auto refused = fleet_.take(Goal::advance);
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_EQ(refused.strangers.size(), 2U);
  EXPECT_TRUE(has(refused.text, "curator (pid 77 on far) holds 'a' in 's'")) << refused.text;
  EXPECT_EQ(window(), P(1, 1));
  fleet_.server_s->evict("a");
  fleet_.server_s->evict("more/7");
  step(Goal::advance);
}

TEST_F(DualCoordinating, AStrangerWhoLeavesInTimeOnlyDelaysIt) {
  step(Goal::advance, 2);
  lock_as_stranger(fleet_.server_s, "a");
  const auto by = fleet_.coordinator(fleet_.waiting(seconds(10)));
  const auto report = fleet_.begin_take(Goal::advance, by);
  fleet_.run_for(milliseconds(100));  // seen once: it may be a claim that is being made
  fleet_.server_s->evict("a");
  fleet_.run_for(seconds(1));
  EXPECT_FALSE(*report);
  fleet_.run_for(seconds(3));
  ASSERT_TRUE(*report);
  EXPECT_EQ((*report)->verdict, Verdict::done) << (*report)->text;
}

TEST_F(DualCoordinating, AStrangerSeenWithinTheQuietPeriodRefusesToo) {
  fleet_.plan.max_lease = seconds(5);
  step(Goal::advance, 2);
  lock_as_stranger(fleet_.server_s, "a");
  const auto refused = fleet_.take(Goal::advance, milliseconds(100));
  EXPECT_EQ(refused.verdict, Verdict::refused) << refused.text;
  EXPECT_EQ(refused.strangers.size(), 1U);
}

TEST_F(DualCoordinating, ItWatchesForAQuietPeriodBeforeItOpens) {
  fleet_.plan.max_lease = seconds(5);
  step(Goal::advance, 2);
  const auto waits = fleet_.take(Goal::advance, seconds(3));
  EXPECT_EQ(waits.verdict, Verdict::waiting);
  EXPECT_TRUE(has(waits.text, "give --wait more than 10.0 s")) << waits.text;
  EXPECT_EQ(fleet_.take(Goal::advance, seconds(11)).verdict, Verdict::done);
}

TEST_F(DualCoordinating, ProgramsOfThePlanAreNoStrangers) {
  step(Goal::advance, 2);
  auto one = fleet_.program(1);
  auto held = fleet_.acquire(one, "a");
  auto waiting = fleet_.acquire(one, "a");
  ASSERT_TRUE(held->handle);
  step(Goal::advance);
  EXPECT_EQ(window(), P(1, 2));
}

TEST_F(DualCoordinating, TwoCommandsAtOnceTakeOneStep) {
  const auto first = fleet_.coordinator(fleet_.waiting(seconds(10)));
  const auto second = fleet_.coordinator(fleet_.waiting(seconds(10)));
  int done = 0;
  int changed = 0;
  for (const auto& by : {first, second}) {
    asio::co_spawn(fleet_.env().executor(), by->take(Goal::advance),
                   [&, by](const std::exception_ptr&, core::migration::DualReport report) {
                     ++done;
                     changed += report.changed ? 1 : 0;
                   });
  }
  fleet_.run_for(seconds(2));
  EXPECT_EQ(done, 2);
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(window(), P(0, 1));
}

TEST_F(DualCoordinating, AStepIsNotTakenOnAWindowOfAnotherLife) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  step(Goal::advance, 2);
  const auto by = fleet_.coordinator(fleet_.waiting(seconds(30)));
  const auto report = fleet_.begin_take(Goal::advance, by);
  fleet_.run_for(seconds(5));
  EXPECT_FALSE(*report);
  auto restored = fleet_.window();  // with the same count, and nobody in it
  restored.born = "00000000000000ff";
  restored.lo = restored.hi = 0;
  restored.programs.clear();
  fleet_.set_window(restored);
  fleet_.run_for(seconds(5));
  ASSERT_TRUE(*report);
  EXPECT_FALSE((*report)->changed);
  EXPECT_EQ(window(), P(0, 0));
}

TEST_F(DualCoordinating, AStopEndsTheWait) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  step(Goal::advance, 2);
  const auto by = fleet_.coordinator(fleet_.waiting(seconds(1000)));
  const auto report = fleet_.begin_take(Goal::advance, by);
  fleet_.run_for(seconds(5));
  EXPECT_FALSE(*report);
  by->stop();
  fleet_.run_for(milliseconds(5));
  ASSERT_TRUE(*report);
  EXPECT_EQ((*report)->verdict, Verdict::stopped);
}

TEST_F(DualCoordinating, StartMayBeRepeatedAndKeepsTheId) {
  const auto id = fleet_.plan.id;
  step(Goal::advance);
  fleet_.plan.id = "ffffffffffffffff";
  const auto again = fleet_.start();
  EXPECT_EQ(again.verdict, Verdict::done) << again.text;
  EXPECT_EQ(again.window->plan_id, id);
  EXPECT_EQ(window(), P(0, 1));
}

TEST_F(DualCoordinating, ALostWindowIsRestoredAfterAWholeLeaseAndNotUnasked) {
  step(Goal::advance);
  auto one = fleet_.program(1);
  std::uint64_t idle = 0;
  for (int i = 0; i < 40; ++i) idle = grant(one, "more/7");
  auto held = fleet_.acquire(one, "a");
  const auto token = *held->handle.token();
  fleet_.stop(one);
  one = fleet_.program(1);
  held = fleet_.acquire(one, "a");
  fleet_.lose_window();
  EXPECT_EQ(fleet_.take(Goal::advance).verdict, Verdict::refused);
  const auto refused = fleet_.start();
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_TRUE(has(refused.text, "--at LO,HI")) << refused.text;
  EXPECT_EQ(fleet_.start(P(0, 1), seconds(1)).verdict, Verdict::waiting);
  const auto begun = fleet_.env().now();
  const auto restored = fleet_.start(P(0, 1));
  EXPECT_EQ(restored.verdict, Verdict::done) << restored.text;
  EXPECT_GE(fleet_.env().now() - begun, Duration(seconds(3)));
  EXPECT_EQ(held->handle.state(), HandleState::lost);
  EXPECT_GE(fleet_.window().floor, std::max(token, idle));
  EXPECT_EQ(window(), P(0, 1));
  EXPECT_GT(grant(one, "a"), token);
}

TEST_F(DualCoordinating, WhoKnowsTheTargetAloneIsRefusedUntilTheCertificate) {
  const auto plain = [&](const std::string& name) {
    const auto stores = fleet_.connections();
    auto outcome = std::make_shared<error_code>(make_error_code(errc::protocol));
    core::Acquisition::Request request;
    request.name = name;
    request.limits.once = true;
    stores.to->acquire(std::make_shared<core::Acquisition>(
        stores.to, request, [outcome](error_code ec, LockHandle) { *outcome = ec; }));
    fleet_.run_for(milliseconds(5));
    return *outcome;
  };
  EXPECT_EQ(plain("a"), errc::config_unsafe);
  EXPECT_EQ(plain("more/7"), errc::config_unsafe);
  EXPECT_FALSE(plain("not/of/the/plan"));
  step(Goal::advance, 4);
  EXPECT_EQ(plain("a"), errc::config_unsafe);
  step(Goal::finish);
  EXPECT_FALSE(plain("a"));
  EXPECT_FALSE(plain("more/7"));
}

TEST_F(DualCoordinating, APlanThatIsBackAtItsBeginningCanBeWithdrawn) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  DualLedger ledger(fleet_.operators());
  EXPECT_EQ(fleet_.run(ledger.withdraw(fleet_.plan)).error, errc::config_unsafe);
  fleet_.stop(zero);
  step(Goal::advance);
  EXPECT_EQ(fleet_.run(ledger.withdraw(fleet_.plan)).error, errc::config_unsafe);
  step(Goal::rollback);
  EXPECT_FALSE(fleet_.run(ledger.withdraw(fleet_.plan)).error);
  EXPECT_TRUE(fleet_.server_t->note("window/p1").empty());
  EXPECT_TRUE(fleet_.server_t->note("plan/p1").empty());
  EXPECT_TRUE(fleet_.server_s->note("plan/p1").empty());
  EXPECT_EQ(fleet_.start().verdict, Verdict::done);
}

// Its registration stands there until somebody takes it out, and nobody else may ever come.
TEST_F(DualCoordinating, APlanIsWithdrawnThoughItsLastProgramWasKilled) {
  fleet_.add_dead_program(0);
  const auto early = fleet_.withdraw(seconds(1));
  EXPECT_EQ(early.verdict, Verdict::waiting);
  EXPECT_EQ(early.waits_for.size(), 1U);
  EXPECT_NE(early.text.find("worker (pid 4711"), std::string::npos) << early.text;
  EXPECT_FALSE(fleet_.server_t->note("window/p1").empty());
  const auto late = fleet_.withdraw(2 * fleet_.plan.registration);
  EXPECT_EQ(late.verdict, Verdict::done) << late.text;
  EXPECT_TRUE(fleet_.server_t->note("window/p1").empty());
}

TEST_F(DualCoordinating, APlanIsNotWithdrawnFromProgramsThatLive) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  const auto report = fleet_.withdraw(3 * fleet_.plan.registration);
  EXPECT_EQ(report.verdict, Verdict::waiting);
  EXPECT_FALSE(fleet_.server_t->note("window/p1").empty());
}

TEST_F(DualCoordinating, TheStatusSaysHowItStands) {
  auto zero = fleet_.program(0);
  grant(zero, "a");
  lock_as_stranger(fleet_.server_t, "b");
  const auto survey = [&] {
    return fleet_.run(core::migration::dual_survey(fleet_.operators(), fleet_.plan));
  };
  auto status = survey();
  ASSERT_TRUE(status.window);
  EXPECT_EQ(status.strangers.size(), 1U);
  ASSERT_EQ(status.alarms.size(), 1U);
  EXPECT_TRUE(has(status.alarms.front(), "while programs of phase 0 lock 's' alone"));
  EXPECT_TRUE(has(status.next, "open 1")) << status.next;
  fleet_.server_t->evict("b");
  step(Goal::advance);
  EXPECT_TRUE(has(survey().next, "close 0"));
  EXPECT_TRUE(has(survey().next, "1 of 1 programs have `phase: 0`")) << survey().next;
  step(Goal::advance);
  status = survey();
  EXPECT_EQ(status.laggards.size(), 1U);
  EXPECT_TRUE(status.strangers.empty());
  EXPECT_TRUE(has(status.next, "it waits for 1 of a phase that is closed")) << status.next;
  fleet_.lose_window();
  status = survey();
  EXPECT_FALSE(status.window);
  EXPECT_TRUE(has(status.alarms.front(), "has lost the window"));
}

TEST_F(DualCoordinating, ARecordOfModeMoveInANamesPlaceIsInTheWay) {
  Owner owner;
  owner.id = "x";
  fleet_.server_s->claim("b", owner, true, 0, {}, [] {});
  fleet_.server_s->seal("b", "x",
                        "dlock-move1 FINAL gen=1.1 target=t floor=1 max_lease_ms=0 plan=old "
                        "id=0123456789abcdef since_ms=1");
  const auto sealed =
      fleet_.run(core::migration::sealed_places(fleet_.operators(), fleet_.plan.names));
  ASSERT_TRUE(sealed.value);
  ASSERT_EQ(sealed.value->size(), 1U);
  EXPECT_TRUE(has(sealed.value->front(), "'b': the record of plan 'old'"));
}

}  // namespace
}  // namespace dlock::tests
