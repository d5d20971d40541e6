// SPDX-License-Identifier: Apache-2.0
//
// The lock's place in a migration's target while the lock is not there: closed by a rollback or by
// an earlier plan that went the other way, opened by whoever comes with a younger record.
#include <gtest/gtest.h>

#include "migration/move/survey.hpp"
#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::Goal;
using core::migration::MoveState;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// In T's place, as if a rollback or an earlier plan had just left it.
void close_target(TwoStores& two, const std::string& text) {
  Owner nobody;
  nobody.id = "nobody";
  two.server_t->claim("a", nobody, false, 0, two.env().now(), [] {});
  ASSERT_TRUE(two.server_t->seal("a", "nobody", text).done);
}

/// There, back and there again, and what the rollback had left in T stands there still.
std::string reach_a_closed_target(TwoStores& two) {
  two.take_now(Goal::advance, "a");
  two.take_now(Goal::rollback, "a");
  auto left = two.server_t->record("a");
  two.take_now(Goal::advance, "a");
  close_target(two, left);
  return left;
}

TEST(MigrationTarget, ARollbackClosesTheTargetUntilTheNextFlip) {
  TwoStores two;
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::done);
  EXPECT_EQ(two.server_t->record("a"), "");
  EXPECT_EQ(two.take_now(Goal::rollback, "a").verdict, Verdict::done);
  const auto closed = core::migration::parse_record(two.server_t->record("a"));
  ASSERT_TRUE(closed);
  EXPECT_TRUE(core::migration::is_closed(*closed, "s"));
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::done);
  EXPECT_EQ(two.server_t->record("a"), "");
}

TEST(MigrationTarget, AClientOpensATargetThatWasClosedForAnEarlierFlip) {
  TwoStores two;
  const auto old = reach_a_closed_target(two);
  auto got = two.acquire_now("a");
  EXPECT_EQ(where(got->handle), "t");
  two.let_go(*got);
  // One that is as young as the record of the source holds: that record is out of date.
  auto young = *core::migration::parse_record(old);
  young.gen = {two.record("a")->gen.flip, two.record("a")->gen.counter + 1};
  close_target(two, core::migration::to_text(young));
  auto waiting = two.acquire("a");
  two.run_for(seconds(5));
  EXPECT_EQ(waiting->times_told, 0);
  EXPECT_EQ(two.server_t->record("a"), core::migration::to_text(young));
  // Nor does a command go on for ever: such a source was restored from an old copy.
  const auto advanced = two.take_now(Goal::advance, "a");
  EXPECT_EQ(advanced.verdict, Verdict::refused);
  EXPECT_NE(advanced.text.find("old copy"), std::string::npos) << advanced.text;
}

TEST(MigrationTarget, ARollbackMakesALateOpeningOfTheTargetFail) {
  TwoStores two;
  const auto old = reach_a_closed_target(two);
  // Whoever has read `old` and the source's record by now may be about to open the target.
  EXPECT_EQ(two.take_now(Goal::rollback, "a").verdict, Verdict::done);
  EXPECT_FALSE(two.record("a"));
  EXPECT_NE(two.server_t->record("a"), "");
  EXPECT_FALSE(two.server_t->set_record("a", old, "", 99).done);
}

TEST(MigrationTarget, ALateRollbackDoesNotCloseTheTargetOfAFinishedLock) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  auto held = two.acquire_now("a");
  auto late = two.take(Goal::rollback, "a", two.coordinator());
  two.run_for(milliseconds(10));
  const auto closing = *two.record("a");
  ASSERT_EQ(closing.state, MoveState::closing);
  two.set_record("a", next_record(closing, MoveState::final_, 0));
  held->handle = LockHandle();
  two.run_for(seconds(1));
  ASSERT_TRUE(late->has_value());
  EXPECT_EQ((*late)->verdict, Verdict::refused);
  EXPECT_EQ(two.server_t->record("a"), "");
}

TEST(MigrationTarget, AfterFinishAPlanOfItsOwnTakesItBack) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.take_now(Goal::finish, "a");
  core::migration::Ledger ledger(two.s, two.t);
  ASSERT_FALSE(two.run(ledger.certify(two.plan)).error);
  auto back = two.plan;
  back.name = "p2";
  back.id = "fedcba9876543210";
  std::swap(back.from, back.to);
  core::migration::Ledger other(two.t, two.s);
  ASSERT_FALSE(two.run(other.publish(back)).error);
  const auto coordinator = std::make_shared<core::migration::Coordinator>(
      two.t, two.s, back, core::migration::Coordinator::Options{});
  auto advanced = two.take(Goal::advance, "a", coordinator);
  two.run_for(milliseconds(10));
  ASSERT_TRUE(advanced->has_value());
  EXPECT_EQ((*advanced)->verdict, Verdict::done) << (*advanced)->text;
  EXPECT_FALSE(two.record("a")) << "it is open again";
  EXPECT_NE(two.server_t->record("a"), "");
  // Not to a store where another record stands.
  auto astray = back;
  astray.from = "u";
  const auto wrong = std::make_shared<core::migration::Coordinator>(
      two.s, two.t, astray, core::migration::Coordinator::Options{});
  auto refused = two.take(Goal::advance, "a", wrong);
  two.run_for(milliseconds(10));
  ASSERT_TRUE(refused->has_value());
  EXPECT_EQ((*refused)->verdict, Verdict::refused);
  EXPECT_FALSE(two.record("a")) << "nothing was changed";
}

std::vector<std::string> alarms(TwoStores& two, std::vector<std::string> moved = {}) {
  const auto status = two.run(core::migration::survey(two.s, two.t, two.plan, std::move(moved)));
  return status.names.front().alarms;
}

TEST(MigrationTarget, StatusTellsOfAMovedLockWhosePlaceIsStillClosed) {
  TwoStores two;
  EXPECT_TRUE(alarms(two).empty());
  const auto old = reach_a_closed_target(two);
  auto told = alarms(two, {"a"});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("still closed"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("`dlock migrate advance p1 --name a`"), std::string::npos) << told[0];
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::done);
  EXPECT_TRUE(alarms(two, {"a"}).empty());
  // As young as the source's record: that is out of date, and no advance helps.
  auto young = *core::migration::parse_record(old);
  young.gen = two.record("a")->gen;
  close_target(two, core::migration::to_text(young));
  told = alarms(two, {"a"});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("old copy"), std::string::npos) << told[0];
}

TEST(MigrationTarget, WhatARollbackHasLeftIsNoAlarmWhileTheLockIsInTheSource) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.take_now(Goal::rollback, "a");
  ASSERT_NE(two.server_t->record("a"), "");
  EXPECT_TRUE(alarms(two).empty());
}

TEST(MigrationTarget, ANameWhosePlaceLeadsElsewhereIsNamed) {
  TwoStores two;
  const auto taken = [&] {
    return two.run(core::migration::taken_places(two.t, "s", two.plan.names))
        .value.value_or(std::vector<std::string>{"no answer"});
  };
  EXPECT_TRUE(taken().empty());
  const auto left = reach_a_closed_target(two);
  EXPECT_TRUE(taken().empty()) << "that is the way it came";
  auto elsewhere = *core::migration::parse_record(left);
  elsewhere.target = "u";
  elsewhere.plan = "another";
  two.server_t->set_record("a", left, core::migration::to_text(elsewhere), 0);
  ASSERT_EQ(taken().size(), 1U);
  EXPECT_EQ(taken()[0],
            "'a': plan 'another' has it in the store 't', where it is FINAL and leads to 'u'; a "
            "lock goes back only the way it came");
  ASSERT_EQ(alarms(two).size(), 1U);
  EXPECT_NE(alarms(two)[0].find("nobody can lock it there"), std::string::npos) << alarms(two)[0];
  two.server_t->set_record("a", core::migration::to_text(elsewhere), "rubbish", 0);
  ASSERT_EQ(taken().size(), 1U);
  EXPECT_NE(taken()[0].find("'a': what stands in its place in the store 't' cannot be read"),
            std::string::npos)
      << taken()[0];
}

TEST(MigrationTarget, ALockThatALaterPlanHasTakenBackIsNoAlarmOfTheFirst) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.take_now(Goal::finish, "a");
  core::migration::Record back = *two.record("a");
  two.server_s->set_record("a", two.server_s->record("a"), "", 0);
  EXPECT_EQ(alarms(two, {"a"}).size(), 1U) << "nobody says where it has gone";
  back.plan = "p2";
  back.target = "s";
  close_target(two, core::migration::to_text(back));
  EXPECT_TRUE(alarms(two, {"a"}).empty());
}

}  // namespace
}  // namespace dlock::tests
