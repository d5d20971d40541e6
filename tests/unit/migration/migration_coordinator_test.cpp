// SPDX-License-Identifier: Apache-2.0
//
// Coordinators of a migration over two stores under virtual time: each row of the protocol's table
// of deaths, holders that a coordinator waits for, and the ledger of the plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::Goal;
using core::migration::MoveState;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(MigrationDeath, BeforeTheForwardWriteItsLockEndsAndALateWriteFails) {
  TwoStores two;
  two.server_s->claim("a", owner("coordinator"), true, 0, {}, [] {});
  auto client = two.acquire("a");
  two.run_for(seconds(1));
  EXPECT_EQ(client->times_told, 0);
  two.server_s->evict("a");  // its lease
  two.run_for(milliseconds(10));
  EXPECT_EQ(where(client->handle), "s");
  EXPECT_FALSE(two.server_s->seal("a", "coordinator", "late").done);
  EXPECT_FALSE(two.record("a"));
}

TEST(MigrationDeath, AfterTheForwardWriteThereIsNothingToDo) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  auto client = two.acquire_now("a");
  EXPECT_EQ(where(client->handle), "t");
}

TEST(MigrationDeath, InClosingAnyRollbackGoesOn) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.set_record("a", next_record(*two.record("a"), MoveState::closing, 0));
  auto client = two.acquire("a");
  two.run_for(seconds(5));
  EXPECT_EQ(client->times_told, 0);  // blocked, and safe
  EXPECT_EQ(two.take_now(Goal::rollback, "a").verdict, Verdict::done);
  two.run_for(seconds(2));
  EXPECT_EQ(where(client->handle), "s");
}

TEST(MigrationDeath, InClosingAnyAdvanceTakesItBack) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  const auto moved = *two.record("a");
  two.set_record("a", next_record(moved, MoveState::closing, 0));
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::done);
  EXPECT_EQ(two.record("a")->state, MoveState::moved);
  EXPECT_NE(two.record("a")->gen, moved.gen);
  auto client = two.acquire("a");
  two.run_for(seconds(2));
  EXPECT_EQ(where(client->handle), "t");
}

TEST(MigrationDeath, AfterLockingTheTargetItsLockEndsAndTheReCheckBarsNewHolders) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  auto client = two.acquire_now("a");
  ASSERT_EQ(where(client->handle), "t");
  auto waiting = two.acquire_now("a");
  two.set_record("a", next_record(*two.record("a"), MoveState::closing, 0));
  two.server_t->claim("a", owner("coordinator"), true, 0, {}, [] {});
  client->handle = LockHandle();
  two.run_for(seconds(5));
  EXPECT_EQ(waiting->times_told, 0);  // granted, and released after the re-check
  two.server_t->release("a", "coordinator");
  EXPECT_EQ(two.take_now(Goal::rollback, "a").verdict, Verdict::done);
  two.run_for(seconds(2));
  EXPECT_EQ(where(waiting->handle), "s");
}

TEST(MigrationDeath, OfTwoCoordinatorsOneWinsAndBothAgree) {
  TwoStores two;
  auto one = two.take(Goal::advance, "a", two.coordinator());
  auto other = two.take(Goal::advance, "a", two.coordinator());
  two.run_for(milliseconds(10));
  ASSERT_TRUE(one->has_value() && other->has_value());
  EXPECT_EQ((*one)->verdict, Verdict::done);
  EXPECT_EQ((*other)->verdict, Verdict::done);
  EXPECT_NE((*one)->changed, (*other)->changed);
  EXPECT_EQ(two.record("a")->gen.counter, 1U);
}

TEST(MigrationDeath, ALateWriteOfARollbackThatWasTakenBackFails) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  const auto closing = next_record(*two.record("a"), MoveState::closing, 0);
  two.set_record("a", closing);
  two.take_now(Goal::advance, "a");
  EXPECT_FALSE(two.server_s->set_record("a", to_text(closing), "", 99).done);
  EXPECT_EQ(two.record("a")->state, MoveState::moved);
}

// Waiting and giving up.

TEST(MigrationCoordinator, NamesTheHolderItWaitsFor) {
  TwoStores two;
  two.server_s->claim("a", owner("holder"), true, 0, {}, [] {});
  core::migration::Coordinator::Options options;
  options.deadline = two.env().now() + seconds(2);
  auto flip = two.take(Goal::advance, "a", two.coordinator(options));
  two.run_for(seconds(3));
  ASSERT_TRUE(flip->has_value());
  EXPECT_EQ((*flip)->verdict, Verdict::waiting);
  EXPECT_EQ((*flip)->holder, "worker (pid 4711 on h)");
  EXPECT_FALSE(two.record("a"));
  EXPECT_TRUE(two.server_s->inspect("a", {}).waiting.empty());
}

TEST(MigrationCoordinator, StopEndsItAndLeavesNothing) {
  TwoStores two;
  two.server_s->claim("a", owner("holder"), true, 0, {}, [] {});
  auto coordinator = two.coordinator();
  auto flip = two.take(Goal::advance, "a", coordinator);
  two.run_for(seconds(2));
  coordinator->stop();
  two.run_for(milliseconds(10));
  ASSERT_TRUE(flip->has_value());
  EXPECT_EQ((*flip)->verdict, Verdict::stopped);
  EXPECT_TRUE(two.server_s->inspect("a", {}).waiting.empty());
}

TEST(MigrationCoordinator, ALossyTargetIsGivenItsLease) {
  TwoStores two;
  two.plan.lossy_target = true;
  two.plan.leased_target = true;
  two.plan.max_lease = seconds(30);
  two.take_now(Goal::advance, "a");
  auto back = two.take(Goal::rollback, "a", two.coordinator());
  two.run_for(seconds(29));
  EXPECT_FALSE(back->has_value());
  EXPECT_EQ(two.record("a")->state, MoveState::closing);
  two.run_for(seconds(2));
  ASSERT_TRUE(back->has_value());
  EXPECT_FALSE(two.record("a"));
}

TEST(MigrationCoordinator, ATargetThatIsGoneIsGivenItsLeaseAndTheSourceIsRaisedBlindly) {
  TwoStores two;
  two.plan.leased_target = true;
  two.plan.max_lease = seconds(30);
  two.take_now(Goal::advance, "a");
  two.server_t->claim("a", owner("nobody knows"), true, 0, {}, [] {});
  core::migration::Coordinator::Options options;
  options.target_gone = true;
  auto back = two.take(Goal::rollback, "a", two.coordinator(options));
  two.run_for(seconds(29));
  EXPECT_FALSE(back->has_value());
  two.run_for(seconds(2));
  ASSERT_TRUE(back->has_value());
  EXPECT_EQ((*back)->verdict, Verdict::done);
  auto got = two.acquire_now("a");
  ASSERT_EQ(where(got->handle), "s");
  EXPECT_GT(*got->handle.token(), std::uint64_t{1} << 48U);
}

TEST(MigrationCoordinator, ATargetWithoutLeasesIsNeverTakenForGone) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  core::migration::Coordinator::Options options;
  options.target_gone = true;
  auto back = two.take(Goal::rollback, "a", two.coordinator(options));
  two.run_for(seconds(1));
  ASSERT_TRUE(back->has_value());
  EXPECT_EQ((*back)->verdict, Verdict::refused);
}

// The ledger.

TEST(MigrationLedger, PublishesOnceAndKeepsTheFirstId) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  const auto plan = two.another_plan("p2", "00000000000000aa", {"x", "y"});
  EXPECT_FALSE(two.run(ledger.publish(plan)).error);
  auto again = plan;
  again.id = "00000000000000bb";
  EXPECT_FALSE(two.run(ledger.publish(again)).error);
  const auto found = two.run(ledger.find("p2", true));
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.plan->id, plan.id);
  EXPECT_EQ(two.server_t->note("plan/p2"), two.server_s->note("plan/p2"));
  const auto both = core::migration::list_text({"p1", "p2@00000000000000aa"});
  EXPECT_EQ(two.server_t->note("plans-in"), both);
  EXPECT_EQ(two.server_s->note("plans-out"), both);
  // The target lost its notes: they are written again.
  two.server_t->set_note("plan/p2", to_text(plan), "");
  EXPECT_FALSE(two.run(ledger.publish(again)).error);
  EXPECT_EQ(two.server_t->note("plan/p2"), to_text(plan));
}

TEST(MigrationLedger, ANameBelongsToOnePlan) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  const auto plan = two.another_plan("p2", "00000000000000aa", {"a", "b"});
  const auto failure = two.run(ledger.publish(plan));
  EXPECT_EQ(failure.error, errc::config_unsafe);
  EXPECT_NE(failure.text.find("'a' belongs to the unfinished plan 'p1'"), std::string::npos);
  auto changed = two.plan;
  changed.patterns = {"a"};
  EXPECT_EQ(two.run(ledger.publish(changed)).error, errc::config_unsafe);
}

TEST(MigrationLedger, ARefusedStartWritesNothing) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  const auto plan = two.another_plan("p2", "00000000000000aa", {"a", "b"});
  EXPECT_EQ(two.run(ledger.objection(plan)).error, errc::config_unsafe);
  EXPECT_EQ(two.run(ledger.publish(plan)).error, errc::config_unsafe);
  for (const auto& server : {two.server_s, two.server_t}) {
    EXPECT_EQ(server->note("plan/p2"), "");
  }
  EXPECT_EQ(two.server_s->note("plans-out"), core::migration::list_text({"p1"}));
  EXPECT_EQ(two.server_t->note("plans-in"), core::migration::list_text({"p1"}));
  EXPECT_FALSE(two.run(ledger.find("p2", true)).plan);
}

// The other plan has the source in common, and another target.
TEST(MigrationLedger, WhatIsInNeitherListIsNotInEffectAndInNobodysWay) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  const auto plan = two.another_plan("p2", "00000000000000aa", {"x"});
  // Its start died between the texts and the lists.
  two.server_s->set_note("plan/p2", "", to_text(plan));
  two.server_t->set_note("plan/p2", "", to_text(plan));
  auto found = two.run(ledger.find("p2", true));
  EXPECT_TRUE(found.plan);
  EXPECT_FALSE(found.listed);
  const auto other = two.another_plan("p2", "00000000000000bb", {"y"});
  EXPECT_FALSE(two.run(ledger.publish(other)).error);
  found = two.run(ledger.find("p2", true));
  EXPECT_TRUE(found.listed);
  EXPECT_EQ(found.plan, other);
  EXPECT_EQ(two.server_t->note("plan/p2"), to_text(other));
  // In one list alone: not yet in effect, and no other plan may start.
  two.server_s->set_note("plans-out", core::migration::list_text({"p1", "p2@00000000000000bb"}),
                         core::migration::list_text({"p1"}));
  EXPECT_FALSE(two.run(ledger.find("p2", true)).listed);
  EXPECT_FALSE(two.run(ledger.publish(other)).error);
  EXPECT_TRUE(two.run(ledger.find("p2", true)).listed);
}

TEST(MigrationLedger, OfTwoStartsAtOnceOneAtMostIsInEffect) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  const auto one = two.another_plan("p2", "00000000000000aa", {"x"});
  const auto other = two.another_plan("p3", "00000000000000bb", {"x"});
  std::vector<Failure> ends;
  for (const auto& plan : {one, other}) {
    asio::co_spawn(two.env().executor(), ledger.publish(plan),
                   [&](const std::exception_ptr&, Failure end) { ends.push_back(end); });
  }
  two.run_for(milliseconds(100));
  ASSERT_EQ(ends.size(), 2U);
  const auto started = std::count_if(ends.begin(), ends.end(),
                                     [](const Failure& failure) { return !failure.error; });
  EXPECT_LE(started, 1);
  const auto first = two.run(ledger.find("p2", true)), second = two.run(ledger.find("p3", true));
  EXPECT_EQ(first.listed + second.listed, started);
}

TEST(MigrationLedger, AFinishedPlanIsNotStartedAgainAndAWithdrawnOneIs) {
  TwoStores two;
  core::migration::Ledger ledger(two.s, two.t);
  EXPECT_FALSE(two.run(ledger.withdraw(two.plan)).error);
  EXPECT_EQ(two.server_s->note("plan/p1"), "");
  EXPECT_EQ(two.server_t->note("plans-in"), "");
  EXPECT_FALSE(two.run(ledger.publish(two.plan)).error);
  EXPECT_FALSE(two.run(ledger.certify(two.plan)).error);
  EXPECT_TRUE(two.run(ledger.find("p1", true)).finished);
  EXPECT_EQ(two.run(ledger.publish(two.plan)).error, errc::config_unsafe);
}

}  // namespace
}  // namespace dlock::tests
