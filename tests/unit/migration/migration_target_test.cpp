// SPDX-License-Identifier: Apache-2.0
//
// The lock's place in a migration's target while the lock is not there: closed by a rollback or by
// an earlier plan in the other direction, opened by a client with a younger record.
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

/// Moves the lock there, back and there again, and restores the record that the rollback left in T.
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
  // A client that has read `old` and the source's record may be about to open the target.
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
  two.set_record("a", next_record(closing, MoveState::moved, 0));
  two.finish();
  held->handle = LockHandle();
  two.run_for(seconds(1));
  ASSERT_TRUE(late->has_value());
  EXPECT_EQ((*late)->verdict, Verdict::refused);
  EXPECT_EQ(two.server_t->record("a"), "");
}

/// Returns the alarms of lock `a`; none if no store shows it.
std::vector<std::string> alarms(TwoStores& two) {
  const auto status = two.run(core::migration::survey(two.s, two.t, two.plan));
  return status.names.empty() ? std::vector<std::string>() : status.names.front().alarms;
}

TEST(MigrationTarget, StatusReportsAPlaceThatWasClosedLaterThanTheSourceKnows) {
  TwoStores two;
  EXPECT_TRUE(alarms(two).empty());
  const auto old = reach_a_closed_target(two);
  EXPECT_TRUE(alarms(two).empty()) << "the first program that asks for it opens it";
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::done);
  // As young as the source's record: that is out of date, and no advance helps.
  auto young = *core::migration::parse_record(old);
  young.gen = two.record("a")->gen;
  close_target(two, core::migration::to_text(young));
  const auto told = alarms(two);
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
    return two.run(core::migration::taken_places(two.t, "s", two.plan.patterns))
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

}  // namespace
}  // namespace dlock::tests
