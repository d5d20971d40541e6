// SPDX-License-Identifier: Apache-2.0
//
// Clients of a lock that is being moved between two stores, under virtual time.
#include <gtest/gtest.h>

#include "migration/policy/incoming_plans.hpp"
#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::Goal;
using core::migration::MoveState;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Migration, AnOpenLockIsHeldInTheSource) {
  TwoStores two;
  auto got = two.acquire_now("a");
  ASSERT_EQ(got->times_told, 1);
  EXPECT_FALSE(got->ec) << got->ec.message();
  EXPECT_EQ(where(got->handle), "s");
}

TEST(Migration, ForwardWaitsForTheHolderAndTheNextGrantIsInTheTargetWithAHigherToken) {
  TwoStores two;
  auto first = two.acquire_now("a");
  ASSERT_TRUE(first->handle);
  auto flip = two.take(Goal::advance, "a", two.coordinator());
  two.run_for(seconds(5));
  EXPECT_FALSE(flip->has_value());
  const auto token = *first->handle.token();
  auto second = two.acquire("a");  // queues behind the coordinator
  two.run_for(seconds(1));
  EXPECT_EQ(second->times_told, 0);
  two.let_go(*first);
  ASSERT_TRUE(flip->has_value());
  EXPECT_EQ((*flip)->verdict, Verdict::done) << (*flip)->text;
  EXPECT_TRUE((*flip)->changed);
  ASSERT_TRUE(two.record("a"));
  EXPECT_EQ(two.record("a")->state, MoveState::moved);
  ASSERT_EQ(second->times_told, 1);
  EXPECT_FALSE(second->ec) << second->ec.message();
  EXPECT_EQ(where(second->handle), "t");
  EXPECT_GT(*second->handle.token(), token + 1);  // above the coordinator's, too
  const auto sequencer = second->handle.sequencer();
  ASSERT_TRUE(sequencer);
  EXPECT_EQ(sequencer->store(), "t");
  EXPECT_TRUE(two.server_s->inspect("a", {}).waiting.empty());  // nothing is left behind the seal
}

TEST(Migration, ADoneStepIsDoneAgain) {
  TwoStores two;
  EXPECT_TRUE(two.take_now(Goal::advance, "a").changed);
  const auto record = two.record("a");
  const auto again = two.take_now(Goal::advance, "a");
  EXPECT_EQ(again.verdict, Verdict::done);
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(two.record("a"), record);
}

TEST(Migration, RollbackDrainsTheTargetAndRaisesTheSource) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  auto held = two.acquire_now("a");
  ASSERT_EQ(where(held->handle), "t");
  const auto token = *held->handle.token();
  auto back = two.take(Goal::rollback, "a", two.coordinator());
  two.run_for(seconds(5));
  EXPECT_FALSE(back->has_value());
  EXPECT_EQ(two.record("a")->state, MoveState::closing);
  auto waiting = two.acquire("a");
  two.run_for(seconds(5));
  EXPECT_EQ(waiting->times_told, 0);
  held->handle = LockHandle();
  two.run_for(seconds(2));
  ASSERT_TRUE(back->has_value());
  EXPECT_EQ((*back)->verdict, Verdict::done);
  EXPECT_FALSE(two.record("a"));
  ASSERT_EQ(waiting->times_told, 1);
  EXPECT_EQ(where(waiting->handle), "s");
  EXPECT_GT(*waiting->handle.token(), token + 1);
}

TEST(Migration, ThereAndBackAndThereAndFinishWithTokensThatRise) {
  TwoStores two;
  std::uint64_t last = 0;
  const auto grant = [&](const std::string& store) {
    auto got = two.acquire_now("a");
    ASSERT_EQ(where(got->handle), store);
    EXPECT_GT(*got->handle.token(), last);
    last = *got->handle.token();
  };
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) grant("s");
    two.take_now(Goal::advance, "a");
    for (int j = 0; j < 3; ++j) grant("t");
    two.take_now(Goal::rollback, "a");
  }
  two.take_now(Goal::advance, "a");
  grant("t");
  two.finish();
  grant("t");
  EXPECT_EQ(two.take_now(Goal::rollback, "a").verdict, Verdict::refused);
}

TEST(Migration, AClientOfTheTargetAloneIsRefusedUntilTheCertificate) {
  TwoStores two;
  const auto refused = [&] {
    auto got = two.acquire_now_in(two.t, "a");
    EXPECT_EQ(got->times_told, 1);
    return got;
  };
  auto early = refused();
  EXPECT_EQ(early->ec, errc::config_unsafe);
  EXPECT_NE(early->diagnostics.server_text.find("migrate: { from: s, to: t, plan: p1 }"),
            std::string::npos)
      << early->diagnostics.server_text;
  two.take_now(Goal::advance, "a");
  EXPECT_EQ(refused()->ec, errc::config_unsafe);
  auto other = two.acquire_now_in(two.t, "not/of/the/plan");
  EXPECT_FALSE(other->ec);
  const auto home = two.finish();
  EXPECT_EQ(refused()->ec, errc::config_unsafe);
  two.certify(home);
  EXPECT_FALSE(refused()->ec);
}

TEST(Migration, AClientOfTheNextPlanIsRefusedUntilTheCertificate) {
  TwoStores two;
  const auto u = two.make_store("u", two.server_name_t() + " next");
  // From t on: it knows nothing of s, where the lock may be held.
  const auto refused = [&] {
    auto got = std::make_shared<TwoStores::Outcome>();
    core::migration::MigratingAcquisition::Request request;
    request.source.name = request.target.name = "a";
    request.source.limits.once = request.target.limits.once = true;
    request.source.diagnostics = &got->diagnostics;
    request.plan = "p2";
    request.poll = seconds(1);
    request.stores = {"s", "t", "u"};
    request.gate = std::make_shared<core::migration::GateBelief>("p2");
    core::migration::MigratingAcquisition::start(two.t, u, std::move(request),
                                                 [got](error_code ec, LockHandle handle) {
                                                   ++got->times_told;
                                                   got->ec = ec;
                                                   got->handle = std::move(handle);
                                                 });
    two.run_for(milliseconds(1));
    EXPECT_EQ(got->times_told, 1);
    return got;
  };
  auto early = refused();
  EXPECT_EQ(early->ec, errc::config_unsafe);
  EXPECT_NE(early->diagnostics.server_text.find("plan 'p1' is moving it"), std::string::npos)
      << early->diagnostics.server_text;
  const auto home = two.finish();
  EXPECT_EQ(refused()->ec, errc::config_unsafe);
  two.certify(home);
  auto later = refused();
  EXPECT_FALSE(later->ec);
  EXPECT_EQ(where(later->handle), "t");
}

TEST(Migration, AClientOfTheTargetHearsOfAPlanThatCameLater) {
  TwoStores two;
  const auto list = two.server_t->note("plans-in");
  two.server_t->set_note("plans-in", list, "");
  auto before = two.acquire_now_in(two.t, "a");
  EXPECT_FALSE(before->ec);
  before->handle = LockHandle();
  two.server_t->set_note("plans-in", "", list);
  two.run_for(core::migration::kIncomingPlansAge);
  // This acquire reads the plans again beside its claim, and uses no grant before that.
  auto beside = two.acquire_now_in(two.t, "a");
  EXPECT_EQ(beside->ec, errc::config_unsafe);
  auto after = two.acquire_now_in(two.t, "a");
  EXPECT_EQ(after->ec, errc::config_unsafe);
}

TEST(Migration, AClientOfTheSourceAloneIsToldWhereItHasGone) {
  TwoStores two;
  auto waiting = two.acquire_in(two.s, "b");
  auto holder = two.acquire_now_in(two.s, "a");
  ASSERT_TRUE(holder->handle);
  auto laggard = two.acquire_now_in(two.s, "a");
  EXPECT_EQ(laggard->times_told, 0);
  auto flip = two.take(Goal::advance, "a", two.coordinator());
  two.let_go(*holder);
  ASSERT_EQ(laggard->times_told, 1);
  two.let_go(*laggard);
  ASSERT_TRUE(flip->has_value());
  auto late = two.acquire_now_in(two.s, "a");
  ASSERT_EQ(late->times_told, 1);
  EXPECT_EQ(late->ec, errc::moving);
  EXPECT_NE(late->diagnostics.server_text.find("plan 'p1'"), std::string::npos);
}

TEST(Migration, AStoreThatThePlanWasNotStartedWithIsRefused) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.server_t->set_note("plan/p1", two.server_t->note("plan/p1"), "");
  auto got = two.acquire_now("a");
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_NE(got->diagnostics.server_text.find("migrate start p1"), std::string::npos);
  EXPECT_EQ(got->diagnostics.store, "t");
}

TEST(Migration, AWaitInTheTargetFollowsTheLockBack) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  // A client that does not take part holds T's lock for ever.
  two.server_t->claim("a", owner("stranger"), true, 0, {}, [] {});
  auto got = two.acquire("a");
  two.run_for(seconds(2));
  EXPECT_EQ(got->times_told, 0);
  const auto record = *two.record("a");
  two.server_s->set_record("a", to_text(record), "", 100);
  two.run_for(seconds(1));
  ASSERT_EQ(got->times_told, 1);
  EXPECT_EQ(where(got->handle), "s");
  EXPECT_TRUE(two.server_t->inspect("a", {}).waiting.empty());
}

TEST(Migration, CancelAndDeadlineLeaveNothingInEitherStore) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.server_t->claim("a", owner("holder"), true, 0, {}, [] {});
  auto late = two.acquire("a", milliseconds(700));
  auto cancelled = two.acquire("a");
  const auto begun = two.env().now();
  two.run_for(milliseconds(300));
  cancelled->moving->cancel();
  EXPECT_EQ(cancelled->times_told, 1);
  EXPECT_EQ(cancelled->ec, errc::cancelled);
  two.run_for(seconds(1));
  EXPECT_EQ(late->times_told, 1);
  EXPECT_EQ(late->ec, errc::timed_out);
  EXPECT_EQ(late->at, begun + milliseconds(700));
  two.run_for(seconds(30));
  EXPECT_TRUE(two.server_s->inspect("a", {}).waiting.empty());
  EXPECT_TRUE(two.server_t->inspect("a", {}).waiting.empty());
  EXPECT_EQ(cancelled->times_told, 1);
}

TEST(Migration, ClosingEndsAWaitForAClosingLock) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.set_record("a", next_record(*two.record("a"), MoveState::closing, 0));
  auto got = two.acquire("a");
  two.run_for(seconds(3));
  EXPECT_EQ(got->times_told, 0);
  asio::co_spawn(two.env().executor(), two.s->close(), [](const std::exception_ptr&) {});
  two.run_for(milliseconds(1));
  EXPECT_EQ(got->times_told, 1);
  EXPECT_EQ(got->ec, errc::closed);
}

TEST(Migration, AHostileRecordIsAnErrorAndNeverAGrant) {
  TwoStores two;
  two.take_now(Goal::advance, "a");
  two.server_s->set_record("a", two.server_s->record("a"), "rubbish", 0);
  auto got = two.acquire_now("a");
  EXPECT_EQ(got->ec, errc::protocol);
  EXPECT_FALSE(got->handle);
  EXPECT_EQ(two.take_now(Goal::advance, "a").verdict, Verdict::refused);
}

}  // namespace
}  // namespace dlock::tests
