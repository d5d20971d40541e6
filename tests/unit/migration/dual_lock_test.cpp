// SPDX-License-Identifier: Apache-2.0
//
// Programs of a plan in mode dual: which locks each phase takes, what its hold rests on, and what
// is left when something of that is lost.
#include <gtest/gtest.h>

#include "tests/support/dual_fleet.hpp"

namespace dlock::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DualLock : public testing::Test {
 protected:
  DualLock() { EXPECT_EQ(fleet_.start().verdict, core::migration::Verdict::done); }

  bool is_free(const std::shared_ptr<memory::SharedStore>& server, const std::string& name = "a") {
    return !server->holder_token(name).has_value();
  }

  struct OneAndTwo {
    DualFleet::Member one;
    DualFleet::Member two;
    std::shared_ptr<DualFleet::Got> held;
    std::shared_ptr<DualFleet::Got> waiting;
  };
  /// Phases 1 and 2 are admitted; a program of phase 2 has the lock, and one of phase 1 wants it.
  OneAndTwo one_waits_for_two() {
    fleet_.admit(1, 2);
    OneAndTwo programs{fleet_.program(1), fleet_.program(2), {}, {}};
    programs.held = fleet_.acquire(programs.two, "a");
    programs.waiting = fleet_.acquire(programs.one, "a");
    return programs;
  }

  void expect_both_free() {
    EXPECT_TRUE(is_free(fleet_.server_s));
    EXPECT_TRUE(is_free(fleet_.server_t));
  }

  DualFleet fleet_;
};

TEST_F(DualLock, PhaseZeroHoldsInTheSourceAlone) {
  auto program = fleet_.program(0);
  auto got = fleet_.acquire(program, "a");
  ASSERT_EQ(got->times_told, 1);
  ASSERT_FALSE(got->ec) << got->diagnostics.server_text;
  EXPECT_EQ(got->handle.store(), "s");
  EXPECT_FALSE(is_free(fleet_.server_s));
  EXPECT_TRUE(is_free(fleet_.server_t));
  const auto* const me = fleet_.window().find(program.registrar->program());
  EXPECT_EQ(fleet_.window().programs.size(), 1U);
  EXPECT_NE(me, nullptr);
}

TEST_F(DualLock, PhaseOneHoldsInBothAndShowsTheTargetsToken) {
  fleet_.admit(0, 1);
  for (int i = 0; i < 5; ++i) {
    auto phase_0 = fleet_.program(0);
    fleet_.acquire(phase_0, "a");
  }
  auto program = fleet_.program(1);
  auto got = fleet_.acquire(program, "a");
  ASSERT_FALSE(got->ec) << got->diagnostics.server_text;
  EXPECT_EQ(got->handle.store(), "t");
  EXPECT_EQ(got->handle.token(), fleet_.server_t->holder_token("a"));
  EXPECT_GT(*got->handle.token(), *fleet_.server_s->holder_token("a"));
  EXPECT_GT(*got->handle.token(), 5U);
  const auto token = *got->handle.token();
  fleet_.let_go(*got);
  expect_both_free();
  // The source was raised above it.
  auto phase_0 = fleet_.program(0);
  auto next = fleet_.acquire(phase_0, "a");
  ASSERT_TRUE(next->handle);
  EXPECT_GT(*next->handle.token(), token);
}

TEST_F(DualLock, PhaseTwoHoldsInTheTargetAloneAboveTheFloor) {
  fleet_.admit(1, 2, 1000);
  auto program = fleet_.program(2);
  auto got = fleet_.acquire(program, "a");
  ASSERT_FALSE(got->ec) << got->diagnostics.server_text;
  EXPECT_EQ(got->handle.store(), "t");
  EXPECT_GT(*got->handle.token(), 1000U);
  EXPECT_TRUE(is_free(fleet_.server_s));
}

TEST_F(DualLock, TokensRiseAcrossAllPhases) {
  std::uint64_t last = 0;
  const auto grant = [&](DualFleet::Member& member) {
    auto got = fleet_.acquire(member, "a");
    ASSERT_TRUE(got->handle) << got->diagnostics.server_text;
    EXPECT_GT(*got->handle.token(), last);
    last = *got->handle.token();
    fleet_.let_go(*got);
  };
  fleet_.admit(0, 1);
  auto zero = fleet_.program(0);
  auto one = fleet_.program(1);
  for (int i = 0; i < 3; ++i) {
    grant(zero);
    grant(one);
    grant(one);
    grant(zero);
  }
  fleet_.admit(1, 2, last);
  auto two = fleet_.program(2);
  for (int i = 0; i < 3; ++i) {
    grant(one);
    grant(two);
    grant(two);
    grant(one);
  }
}

TEST_F(DualLock, ZeroAndOneExcludeEachOtherAndSoDoOneAndTwo) {
  fleet_.admit(0, 1);
  auto zero = fleet_.program(0);
  auto one = fleet_.program(1);
  auto held = fleet_.acquire(zero, "a");
  ASSERT_TRUE(held->handle);
  EXPECT_EQ(fleet_.try_acquire(one, "a")->ec, errc::timed_out);
  fleet_.let_go(*held);
  held = fleet_.acquire(one, "a");
  ASSERT_TRUE(held->handle);
  EXPECT_EQ(fleet_.try_acquire(zero, "a")->ec, errc::timed_out);
  fleet_.admit(1, 2);
  auto two = fleet_.program(2);
  EXPECT_EQ(fleet_.try_acquire(two, "a")->ec, errc::timed_out);
  fleet_.let_go(*held);
  held = fleet_.acquire(two, "a");
  ASSERT_TRUE(held->handle);
  EXPECT_EQ(fleet_.try_acquire(one, "a")->ec, errc::timed_out);
  fleet_.run_for(milliseconds(5));
  EXPECT_TRUE(is_free(fleet_.server_s));  // nothing is left of the try
}

TEST_F(DualLock, PhaseOneWaitsForTheTargetWithTheSourceInHand) {
  auto [one, two, held, waiting] = one_waits_for_two();
  fleet_.run_for(seconds(20));
  EXPECT_EQ(waiting->times_told, 0);
  EXPECT_FALSE(is_free(fleet_.server_s));
  fleet_.let_go(*held);
  ASSERT_EQ(waiting->times_told, 1);
  EXPECT_TRUE(waiting->handle);
}

TEST_F(DualLock, WhoGivesUpWhileItWaitsForTheTargetKeepsNothing) {
  auto [one, two, held, cancelled] = one_waits_for_two();
  EXPECT_FALSE(is_free(fleet_.server_s));
  cancelled->acquisition->cancel();
  fleet_.run_for(milliseconds(5));
  ASSERT_EQ(cancelled->times_told, 1);
  EXPECT_EQ(cancelled->ec, errc::cancelled);
  EXPECT_TRUE(is_free(fleet_.server_s));
  auto late = fleet_.acquire(one, "a", milliseconds(500));
  fleet_.run_for(seconds(1));
  ASSERT_EQ(late->times_told, 1);
  EXPECT_EQ(late->ec, errc::timed_out);
  EXPECT_TRUE(is_free(fleet_.server_s));
  EXPECT_TRUE(fleet_.server_t->inspect("a", {}).waiting.empty());
}

TEST_F(DualLock, LosingEitherLockLosesBoth) {
  fleet_.admit(0, 1);
  auto one = fleet_.program(1);
  for (const auto& loses : {fleet_.server_s, fleet_.server_t}) {
    auto got = fleet_.acquire(one, "a");
    ASSERT_TRUE(got->handle);
    std::vector<HandleState> told;
    got->handle.on_state([&](HandleState state, LossReason) { told.push_back(state); });
    loses->evict("a");
    fleet_.run_for(milliseconds(5));
    EXPECT_EQ(got->handle.state(), HandleState::lost);
    EXPECT_EQ(got->handle.loss_reason(), LossReason::broken);
    EXPECT_EQ(told, std::vector{HandleState::lost});
    EXPECT_TRUE(got->handle.stop_token().stop_requested());
    EXPECT_TRUE(is_free(loses));
    fleet_.let_go(*got);
    expect_both_free();
  }
}

TEST_F(DualLock, WhatIsLeftOfALostHoldStaysUntilItsUserHasStopped) {
  fleet_.admit(1, 1);
  auto one = fleet_.program(1);
  auto other = fleet_.program(1);
  for (const bool lets_go : {true, false}) {
    auto got = fleet_.acquire(one, "a");
    ASSERT_TRUE(got->handle);
    const auto promised = *got->handle.remaining();
    fleet_.server_s->evict("a");  // as if the source had forgotten everything
    auto next = fleet_.acquire(other, "a");
    EXPECT_EQ(got->handle.state(), HandleState::lost);
    EXPECT_FALSE(next->handle) << "its user has been told, and may not have stopped";
    if (lets_go) {
      fleet_.let_go(*got);
    } else {
      fleet_.run_for(promised - milliseconds(20));
      EXPECT_FALSE(next->handle) << "it was promised for longer";
      fleet_.run_for(milliseconds(30));
    }
    EXPECT_TRUE(next->handle);
    fleet_.let_go(*next);
    expect_both_free();
  }
}

TEST_F(DualLock, TheSourceLostWhileTheTargetIsWaitedForBeginsAnew) {
  auto [one, two, held, waiting] = one_waits_for_two();
  const auto first = *fleet_.server_s->holder_token("a");
  fleet_.server_s->evict("a");
  fleet_.run_for(milliseconds(5));
  EXPECT_EQ(waiting->times_told, 0);
  ASSERT_FALSE(is_free(fleet_.server_s));
  EXPECT_GT(*fleet_.server_s->holder_token("a"), first);
  fleet_.let_go(*held);
  EXPECT_TRUE(waiting->handle);
}

TEST_F(DualLock, AReleaseTellsWhenBothAreGivenBack) {
  fleet_.admit(0, 1);
  auto one = fleet_.program(1);
  auto got = fleet_.acquire(one, "a");
  int told = 0;
  got->handle.start_release([&](error_code ec) {
    ++told;
    EXPECT_FALSE(ec);
    expect_both_free();
  });
  fleet_.run_for(milliseconds(5));
  EXPECT_EQ(told, 1);
}

TEST_F(DualLock, APhaseThatIsNotAdmittedGetsNothing) {
  auto two = fleet_.program(2);
  auto got = fleet_.acquire(two, "a");
  EXPECT_EQ(got->ec, errc::window_closed);
  EXPECT_NE(got->diagnostics.server_text.find("write `phase: 0`"), std::string::npos)
      << got->diagnostics.server_text;
  EXPECT_TRUE(fleet_.window().programs.empty());
}

TEST_F(DualLock, AClosedPhaseGoesOnUntilItIsRestarted) {
  auto zero = fleet_.program(0);
  auto got = fleet_.acquire(zero, "a");
  got->handle = LockHandle();
  fleet_.admit(1, 1);
  fleet_.run_for(seconds(30));
  EXPECT_TRUE(fleet_.acquire(zero, "a")->handle);
  fleet_.stop(zero);
  EXPECT_TRUE(fleet_.window().programs.empty());
  auto again = fleet_.program(0);
  EXPECT_EQ(fleet_.acquire(again, "a")->ec, errc::window_closed);
}

TEST_F(DualLock, WithoutAWindowNobodyAcquires) {
  fleet_.lose_window();
  auto zero = fleet_.program(0);
  auto got = fleet_.acquire(zero, "a");
  EXPECT_EQ(got->ec, errc::not_registered);
  EXPECT_NE(got->diagnostics.server_text.find("has no window of plan 'p1'"), std::string::npos);
}

TEST_F(DualLock, AHoldEndsWithItsRegistration) {
  auto zero = fleet_.program(0);
  auto got = fleet_.acquire(zero, "a");
  ASSERT_TRUE(got->handle);
  ASSERT_TRUE(got->handle.remaining());  // this store has no lease of its own
  EXPECT_LT(*got->handle.remaining(), Duration(seconds(3)));
  fleet_.run_for(seconds(30));
  EXPECT_EQ(got->handle.state(), HandleState::held);
  fleet_.lose_window();
  fleet_.run_for(seconds(3));
  EXPECT_EQ(got->handle.state(), HandleState::lost);
  EXPECT_TRUE(is_free(fleet_.server_s));
}

TEST_F(DualLock, AProgramThatWasStoppedKnowsByItsOwnClock) {
  fleet_.admit(0, 1);
  auto one = fleet_.program(1);
  auto got = fleet_.acquire(one, "a");
  ASSERT_TRUE(got->handle);
  fleet_.env().pause_for(seconds(4));
  EXPECT_EQ(got->handle.state(), HandleState::lost);  // before anything of its loop has run
  fleet_.run_for(milliseconds(5));
  expect_both_free();
  // It registers again, and goes on.
  EXPECT_TRUE(fleet_.acquire(one, "a")->handle);
}

TEST_F(DualLock, ARegistrationThatWasTakenAwayIsLost) {
  auto zero = fleet_.program(0);
  auto got = fleet_.acquire(zero, "a");
  auto without = fleet_.window();
  core::migration::leave(without, zero.registrar->program());
  fleet_.set_window(without);
  fleet_.run_for(milliseconds(1100));  // the next renewal
  EXPECT_EQ(got->handle.state(), HandleState::lost);
  EXPECT_EQ(got->handle.loss_reason(), LossReason::removed);
}

TEST_F(DualLock, WhoIsNotAdmittedAnyMoreTakesItsOldRegistrationAway) {
  auto zero = fleet_.program(0);
  fleet_.acquire(zero, "a");
  fleet_.admit(1, 1);
  fleet_.env().pause_for(seconds(4));
  EXPECT_EQ(fleet_.window().programs.size(), 1U);
  EXPECT_EQ(fleet_.acquire(zero, "a")->ec, errc::window_closed);
  EXPECT_TRUE(fleet_.window().programs.empty());
}

TEST_F(DualLock, RegistrationsAreRenewedAtAboutAThirdOfTheirLease) {
  auto zero = fleet_.program(0);
  auto held = fleet_.acquire(zero, "a");
  const auto before = fleet_.window().seq;
  fleet_.run_for(milliseconds(10'100));
  EXPECT_GE(fleet_.window().seq, before + 10);
  EXPECT_LE(fleet_.window().seq, before + 12);
}

TEST_F(DualLock, TheDeadAreTakenAwayByTheLivingAndNotEarlier) {
  const auto dead = fleet_.add_dead_program(0);
  auto zero = fleet_.program(0);
  auto held = fleet_.acquire(zero, "a");
  fleet_.run_for(milliseconds(3100));
  EXPECT_NE(fleet_.window().find(dead), nullptr);
  fleet_.run_for(seconds(3));
  EXPECT_EQ(fleet_.window().find(dead), nullptr);
  EXPECT_EQ(fleet_.window().programs.size(), 1U);
}

TEST_F(DualLock, NoTokenIsGivenOutThatTheWindowDoesNotKnowOf) {
  auto zero = fleet_.program(0);
  for (int i = 0; i < 3; ++i) {
    auto got = fleet_.acquire(zero, "a");
    ASSERT_TRUE(got->handle);
    EXPECT_GE(fleet_.window().highest_token(), *got->handle.token());
    fleet_.let_go(*got);
  }
  const auto known = fleet_.window().highest_token();
  fleet_.stop(zero);
  EXPECT_EQ(fleet_.window().highest_token(), known);
  EXPECT_EQ(fleet_.window().top, known);
}

TEST_F(DualLock, WhoComesSecondWritesOnceBeforeItsFirstLock) {
  auto first = fleet_.program(0);
  auto second = fleet_.program(0);
  auto before = fleet_.window().seq;
  fleet_.acquire(first, "a");
  EXPECT_EQ(fleet_.window().seq, before + 2);  // registers; and says how high its tokens may be
  before = fleet_.window().seq;
  fleet_.acquire(second, "b");
  EXPECT_EQ(fleet_.window().seq, before + 1);
}

TEST_F(DualLock, ClaimsNameTheirProgram) {
  auto zero = fleet_.program(0);
  auto held = fleet_.acquire(zero, "a");
  const auto owner = fleet_.server_s->inspect("a", {}).owner;
  ASSERT_TRUE(owner);
  EXPECT_TRUE(core::migration::is_claim_of(owner->id, zero.registrar->program()));
  EXPECT_EQ(owner->id.size(), 36U);
}

TEST_F(DualLock, AProgramThatEndsLosesItsLocksAndLeaves) {
  auto zero = fleet_.program(0);
  auto held = fleet_.acquire(zero, "a");
  fleet_.stop(zero);
  EXPECT_EQ(held->handle.state(), HandleState::lost);
  EXPECT_EQ(held->handle.loss_reason(), LossReason::closed);
  EXPECT_TRUE(fleet_.window().programs.empty());
  EXPECT_TRUE(is_free(fleet_.server_s));
  EXPECT_EQ(fleet_.acquire(zero, "a")->ec, errc::closed);
}

TEST_F(DualLock, AnotherPlanThanTheOneThatWasStartedIsRefused) {
  auto other = fleet_.window();
  other.from = "x";
  fleet_.set_window(other);
  auto zero = fleet_.program(0);
  auto got = fleet_.acquire(zero, "a");
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_NE(got->diagnostics.server_text.find("goes from 'x' to 't'"), std::string::npos);
}

// Each program's registration is a change of the one text that names all of them. With sanitizers
// most of them are entries of that text.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLivePrograms = 100;
#else
constexpr std::size_t kLivePrograms = core::migration::kMostPrograms;
#endif

TEST_F(DualLock, OneProgramTooManyIsToldWhy) {
  std::vector<DualFleet::Member> members;
  std::vector<std::shared_ptr<DualFleet::Got>> all;
  fleet_.add_dead_programs(core::migration::kMostPrograms - kLivePrograms, 0);
  for (std::size_t i = 0; i < kLivePrograms; ++i) {
    members.push_back(fleet_.program(0));
    all.push_back(fleet_.start_acquire(members.back(), "more/" + std::to_string(i)));
  }
  fleet_.run_for(seconds(2));
  for (const auto& got : all) ASSERT_TRUE(got->handle) << got->diagnostics.server_text;
  auto late = fleet_.program(0);
  const auto refused = fleet_.acquire(late, "a");
  EXPECT_EQ(refused->ec, errc::not_registered);
  EXPECT_NE(refused->diagnostics.server_text.find("500 programs"), std::string::npos)
      << refused->diagnostics.server_text;
  fleet_.run_for(seconds(5));
  for (const auto& got : all) EXPECT_EQ(got->handle.state(), HandleState::held);
  fleet_.stop(members.back());
  EXPECT_TRUE(fleet_.acquire(late, "a")->handle);
}

TEST_F(DualLock, ManyLocksOfManyProgramsAtOnce) {
  fleet_.admit(0, 1);
  std::vector<DualFleet::Member> members;
  for (int i = 0; i < 20; ++i) members.push_back(fleet_.program(i % 2));
  std::vector<std::shared_ptr<DualFleet::Got>> all;
  for (auto& member : members) {
    for (const auto* name : {"a", "b", "more/1"}) {
      all.push_back(fleet_.start_acquire(member, name));
    }
  }
  int held = 0;
  for (int round = 0; round < 200 && held < 60; ++round) {
    fleet_.run_for(milliseconds(20));
    for (const auto& got : all) {
      if (!got->handle) continue;
      ++held;
      got->handle = LockHandle();
    }
  }
  EXPECT_EQ(held, 60);
  EXPECT_EQ(fleet_.window().programs.size(), 20U);
}

}  // namespace
}  // namespace dlock::tests
