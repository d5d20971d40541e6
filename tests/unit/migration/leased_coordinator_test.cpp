// SPDX-License-Identifier: Apache-2.0
//
// The operator's side of a leased gate: start, turns, waits, the end, a lost gate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "migration/leased/leased_coordinator.hpp"
#include "tests/support/leased_fleet.hpp"

namespace dlock::tests {
namespace {

using core::migration::Goal;
using core::migration::LeasedCoordinator;
using core::migration::LeasedReport;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using State = LeasedFleet::State;

class LeasedOperator : public testing::Test {
 protected:
  LeasedOperator() {
    fleet_.plan.gate = "t";
    fleet_.plan.lease = LeasedFleet::kLease;
    fleet_.server_t->set_note("leased/p1", fleet_.server_t->note("leased/p1"), "");
    fleet_.server_t->set_note("plan/p1", fleet_.server_t->note("plan/p1"), "");
    operator_ = fleet_.program();
  }
  std::shared_ptr<LeasedCoordinator> coordinator(LeasedCoordinator::Options options = {}) {
    return std::make_shared<LeasedCoordinator>(operator_.stores, fleet_.plan, std::move(options));
  }
  LeasedReport start(std::optional<State> at = {}) {
    return fleet_.run(coordinator()->start(at), seconds(10));
  }
  LeasedReport take(Goal goal, LeasedCoordinator::Options options = {}) {
    return fleet_.run(coordinator(std::move(options))->take(goal), seconds(30));
  }
  static LeasedCoordinator::Options legacy_gone() {
    LeasedCoordinator::Options options;
    options.legacy_gone = true;
    return options;
  }
  std::string list(const std::shared_ptr<memory::SharedStore>& server, const char* key) {
    return server->note(key);
  }

  LeasedFleet fleet_;
  LeasedFleet::Member operator_;
};

TEST_F(LeasedOperator, NobodyLocksBeforeTheStart) {
  auto program = fleet_.program();
  EXPECT_EQ(fleet_.acquire(program, "a")->ec, errc::no_gate);
  const auto report = start();
  EXPECT_EQ(report.verdict, Verdict::done) << report.text;
  EXPECT_EQ(fleet_.gate().state, State::source);
  EXPECT_EQ(fleet_.gate().version, 1U);
  EXPECT_THAT(list(fleet_.server_t, "plans-in"), HasSubstr("p1@"));
  EXPECT_THAT(list(fleet_.server_s, "plans-out"), HasSubstr("p1@"));
  EXPECT_TRUE(fleet_.acquire(program, "a")->handle);
  const auto before = fleet_.gate();
  EXPECT_EQ(start().verdict, Verdict::done) << "it may be repeated";
  EXPECT_EQ(fleet_.gate(), before);
}

TEST_F(LeasedOperator, ASourceThatHasForgottenEverythingChangesNothing) {
  start();
  fleet_.server_s->set_note("plans-out", fleet_.server_s->note("plans-out"), "");
  fleet_.server_s->set_note("plan/p1", fleet_.server_s->note("plan/p1"), "");
  EXPECT_EQ(take(Goal::advance, legacy_gone()).verdict, Verdict::done);
  EXPECT_EQ(take(Goal::finish).verdict, Verdict::done);
  EXPECT_THAT(list(fleet_.server_t, "plans-in"), HasSubstr("=p1"));
}

TEST_F(LeasedOperator, AnAdvanceWaitsForAWholeLeaseOfThatVersion) {
  start();
  const auto half = take(Goal::advance);
  EXPECT_EQ(half.verdict, Verdict::waiting);
  EXPECT_TRUE(half.changed);
  EXPECT_THAT(half.text, HasSubstr("--legacy-gone"));
  EXPECT_EQ(fleet_.gate().state, State::source_then_target);
  auto options = legacy_gone();
  options.deadline = fleet_.env().now() + seconds(1);
  EXPECT_THAT(take(Goal::advance, options).text, HasSubstr("--wait"));
  EXPECT_EQ(fleet_.gate().state, State::source_then_target);
  // Another command that begins now waits for all of it again: it has not seen the version before.
  const auto begun = fleet_.env().now();
  const auto report = take(Goal::advance, legacy_gone());
  EXPECT_EQ(report.verdict, Verdict::done) << report.text;
  EXPECT_GE(fleet_.env().now() - begun, core::migration::turn_wait(LeasedFleet::kLease));
  EXPECT_EQ(fleet_.gate().state, State::target);
  EXPECT_GT(fleet_.gate().floor, 0U);
}

TEST_F(LeasedOperator, AVersionThatChangesMeanwhileIsWaitedForAnew) {
  start();
  take(Goal::advance);
  const auto by = coordinator(legacy_gone());
  auto done = fleet_.begin(by->take(Goal::advance), by);
  fleet_.run_for(seconds(2));
  fleet_.turn(State::source);
  fleet_.turn(State::source_then_target);
  fleet_.run_for(seconds(2));
  EXPECT_EQ(fleet_.gate().state, State::source_then_target);
  EXPECT_FALSE(*done);
  fleet_.run_for(seconds(3));
  ASSERT_TRUE(*done);
  EXPECT_EQ(fleet_.gate().state, State::target);
}

TEST_F(LeasedOperator, GoesBackAtOnceOrAfterTheWait) {
  start();
  take(Goal::advance);
  auto begun = fleet_.env().now();
  EXPECT_EQ(take(Goal::rollback).verdict, Verdict::done);
  EXPECT_LT(fleet_.env().now() - begun, seconds(1));
  EXPECT_EQ(fleet_.gate().state, State::source);
  take(Goal::advance, legacy_gone());
  const auto floor = fleet_.gate().floor;
  begun = fleet_.env().now();
  EXPECT_EQ(take(Goal::rollback).verdict, Verdict::done);
  EXPECT_GE(fleet_.env().now() - begun, core::migration::turn_wait(LeasedFleet::kLease));
  EXPECT_EQ(fleet_.gate().state, State::source);
  EXPECT_GT(fleet_.gate().floor, floor);
}

TEST_F(LeasedOperator, EndsForGoodOrIsWithdrawn) {
  start();
  EXPECT_EQ(take(Goal::finish).verdict, Verdict::refused);
  LeasedCoordinator::Options withdraw;
  withdraw.withdraw = true;
  EXPECT_EQ(take(Goal::rollback, withdraw).verdict, Verdict::done);
  EXPECT_EQ(fleet_.gate().state, State::ended);
  EXPECT_EQ(list(fleet_.server_t, "plans-in"), "");
  EXPECT_EQ(list(fleet_.server_t, "plan/p1"), "");
  EXPECT_EQ(take(Goal::advance).verdict, Verdict::refused);
  EXPECT_EQ(take(Goal::rollback, withdraw).verdict, Verdict::done) << "it may be repeated";

  fleet_.plan.id = "2222222222222222";
  EXPECT_EQ(start().verdict, Verdict::done);
  EXPECT_EQ(fleet_.gate().plan_id, fleet_.plan.id);
  take(Goal::advance, legacy_gone());
  EXPECT_EQ(take(Goal::finish).verdict, Verdict::done);
  EXPECT_EQ(fleet_.gate().state, State::final_);
  EXPECT_EQ(take(Goal::rollback).verdict, Verdict::refused);
  EXPECT_EQ(take(Goal::finish).verdict, Verdict::done) << "it may be repeated";
  EXPECT_EQ(start().verdict, Verdict::refused);
  // A client that knows the target alone gets a token above the floor.
  auto other = fleet_.program();
  core::Acquisition::Request request;
  request.name = "new";
  auto got = std::make_shared<Outcome>();
  other.stores.to->acquire(std::make_shared<core::Acquisition>(other.stores.to, std::move(request),
                                                               write_down(fleet_.env(), got)));
  fleet_.run_for(milliseconds(5));
  ASSERT_TRUE(got->handle) << got->ec.message();
  EXPECT_GT(*got->handle.token(), fleet_.gate().floor);
}

TEST_F(LeasedOperator, AStrangerInTheSourceIsNamed) {
  start();
  auto other = fleet_.program();
  core::Acquisition::Request request;
  request.name = "a";
  auto got = std::make_shared<Outcome>();
  other.stores.from->acquire(std::make_shared<core::Acquisition>(
      other.stores.from, std::move(request), write_down(fleet_.env(), got)));
  fleet_.run_for(milliseconds(5));
  ASSERT_TRUE(got->handle);
  auto report = take(Goal::advance, legacy_gone());
  EXPECT_EQ(report.verdict, Verdict::refused);
  ASSERT_EQ(report.strangers.size(), 1U);
  EXPECT_THAT(report.text, HasSubstr("holds 'a' in 's' and does not take part"));
  fleet_.let_go(*got);
  auto program = fleet_.program();
  auto held = fleet_.acquire(program, "a");
  ASSERT_TRUE(held->handle);
  EXPECT_EQ(take(Goal::advance, legacy_gone()).verdict, Verdict::done) << "it takes part";
  const auto status =
      fleet_.run(core::migration::leased_survey(operator_.stores, fleet_.plan), seconds(1));
  EXPECT_TRUE(status.alarms.empty());
  EXPECT_TRUE(status.strangers.empty());
  EXPECT_THAT(status.next, HasSubstr("finish"));
}

TEST_F(LeasedOperator, ALostGateIsRestoredAfterAWholeLease) {
  start();
  fleet_.lose_gate();
  const auto refused = start();
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_THAT(refused.text, HasSubstr("--at S"));
  const auto lost =
      fleet_.run(core::migration::leased_survey(operator_.stores, fleet_.plan), seconds(1));
  ASSERT_EQ(lost.alarms.size(), 1U);
  EXPECT_THAT(lost.alarms.front(), HasSubstr("lost the gate"));
  const auto begun = fleet_.env().now();
  EXPECT_EQ(start(State::target).verdict, Verdict::done);
  EXPECT_GE(fleet_.env().now() - begun, core::migration::turn_wait(LeasedFleet::kLease));
  EXPECT_EQ(fleet_.gate().state, State::target);
  EXPECT_GT(fleet_.gate().floor, 0U);
  EXPECT_EQ(start(State::source).verdict, Verdict::refused) << "the gate is there";
  auto program = fleet_.program();
  EXPECT_TRUE(fleet_.acquire(program, "a")->handle);
}

TEST_F(LeasedOperator, AStopEndsAWait) {
  start();
  const auto by = coordinator(legacy_gone());
  auto done = fleet_.begin(by->take(Goal::advance), by);
  fleet_.run_for(seconds(1));
  by->stop();
  fleet_.run_for(milliseconds(5));
  ASSERT_TRUE(*done);
  EXPECT_EQ((*done)->verdict, Verdict::stopped);
  EXPECT_EQ(fleet_.gate().state, State::source_then_target);
}

}  // namespace
}  // namespace dlock::tests
