// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dlock/spi/error.hpp"
#include "migration/leased/leased_acquire_fsm.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::seconds;
using Fsm = LeasedAcquireFsm;
using Action = Fsm::Action;
using S = LeasedState;

Fsm::Facts facts(S state, std::uint64_t floor = 0, std::uint64_t ceiling = 100) {
  Fsm::Facts facts;
  facts.view = Fsm::View{state, floor, ceiling};
  facts.now = TimePoint(seconds(1));
  return facts;
}
Fsm::Facts unknown() {
  auto none = facts(S::source);
  none.view.reset();
  return none;
}
Fsm::Facts half_lost(S state) {
  auto lost = facts(state);
  lost.is_half_lost = true;
  return lost;
}
Fsm::Outcome granted(std::uint64_t token) {
  Fsm::Outcome outcome;
  outcome.granted = true;
  outcome.token = token;
  return outcome;
}
Fsm::Outcome refused(errc error) {
  Fsm::Outcome outcome;
  outcome.error = error;
  outcome.failure = make_failure(error, "");
  return outcome;
}
Fsm::Limits limits(bool once = false) {
  Fsm::Limits limits;
  limits.once = once;
  limits.deadline = TimePoint(seconds(10));
  limits.connect_timeout = seconds(5);
  return limits;
}

struct Begun {
  explicit Begun(S state, std::uint64_t floor = 0, bool once = false) : fsm(limits(once)) {
    EXPECT_EQ(fsm.begin().what, Action::read);
    step = fsm.on_read({}, facts(state, floor));
  }
  Fsm fsm;
  Fsm::Step step;
};

TEST(LeasedAcquireFsm, LocksInTheOrderOfTheState) {
  Begun source(S::source);
  EXPECT_EQ(source.step.what, Action::lock_source);
  EXPECT_EQ(source.fsm.on_locked(true, granted(1), facts(S::source)).what, Action::finish);
  EXPECT_TRUE(source.fsm.granted());
  EXPECT_TRUE(source.fsm.is_source_shown());

  Begun both(S::source_then_target);
  EXPECT_EQ(both.step.what, Action::lock_source);
  EXPECT_EQ(both.fsm.on_locked(true, granted(1), facts(S::source_then_target)).what,
            Action::lock_target);
  EXPECT_EQ(both.fsm.on_locked(false, granted(2), facts(S::source_then_target)).what,
            Action::finish);
  EXPECT_TRUE(both.fsm.is_source_shown());

  Begun target(S::final_);
  EXPECT_EQ(target.step.what, Action::lock_target);
  EXPECT_EQ(target.fsm.on_locked(false, granted(1), facts(S::final_)).what, Action::finish);
  EXPECT_FALSE(target.fsm.is_source_shown());

  Begun back(S::target_then_source);
  EXPECT_EQ(back.step.what, Action::lock_target);
  EXPECT_EQ(back.fsm.on_locked(false, granted(1), facts(S::target_then_source)).what,
            Action::lock_source);
  EXPECT_EQ(back.fsm.on_locked(true, granted(1), facts(S::target_then_source)).what,
            Action::finish);
  EXPECT_FALSE(back.fsm.is_source_shown());
}

TEST(LeasedAcquireFsm, AGrantCountsOnlyUnderAReading) {
  Begun begun(S::source);
  EXPECT_EQ(begun.fsm.on_locked(true, granted(1), unknown()).what, Action::read);
  const auto step = begun.fsm.on_read({}, facts(S::source));
  EXPECT_EQ(step.what, Action::finish);
  EXPECT_FALSE(step.gives_back) << "the lock was kept";
}

TEST(LeasedAcquireFsm, WhatDoesNotFitTheReadingIsGivenBack) {
  for (const auto turned : {S::target, S::target_then_source, S::final_}) {
    Begun begun(S::source);
    const auto step = begun.fsm.on_locked(true, granted(1), facts(turned));
    EXPECT_EQ(step.what, Action::read);
    EXPECT_TRUE(step.gives_back);
    EXPECT_EQ(begun.fsm.on_read({}, facts(turned)).what, Action::lock_target);
  }
  Begun both(S::source_then_target);
  both.fsm.on_locked(true, granted(1), facts(S::source_then_target));
  EXPECT_TRUE(both.fsm.on_locked(false, granted(1), facts(S::target)).gives_back);
}

TEST(LeasedAcquireFsm, ATokenIsAboveTheFloorAndAtMostTheCeiling) {
  Begun begun(S::target, 50);
  EXPECT_EQ(begun.fsm.min_token(), 50U);
  EXPECT_TRUE(begun.fsm.on_locked(false, granted(60), facts(S::target, 60)).gives_back);
  EXPECT_EQ(begun.fsm.on_read({}, facts(S::target, 60)).what, Action::lock_target);
  EXPECT_EQ(begun.fsm.on_locked(false, granted(101), facts(S::target, 60)).what, Action::raise);
  EXPECT_EQ(begun.fsm.highest(), 101U);
  EXPECT_EQ(begun.fsm.on_raised({}, facts(S::target, 60, 200)).what, Action::finish);
  // The second token of two is compared, too.
  Begun both(S::source_then_target);
  both.fsm.on_locked(true, granted(1), facts(S::source_then_target));
  EXPECT_EQ(both.fsm.on_locked(false, granted(101), facts(S::source_then_target)).what,
            Action::raise);
  // After the end nobody raises it.
  Begun over(S::final_);
  EXPECT_EQ(over.fsm.on_locked(false, granted(101), facts(S::final_)).what, Action::finish);
}

TEST(LeasedAcquireFsm, AWaitIsInVainWhenTheGateNamesAnotherLockFirst) {
  Begun begun(S::source);
  for (const auto state : {S::source, S::source_then_target, S::ended}) {
    EXPECT_FALSE(begun.fsm.is_in_vain({state, 0, 100}));
  }
  for (const auto state : {S::target, S::target_then_source, S::final_}) {
    EXPECT_TRUE(begun.fsm.is_in_vain({state, 0, 100}));
  }
  EXPECT_TRUE(begun.fsm.is_in_vain({S::source, 1, 100})) << "the floor is another one";
  begun.fsm.on_locked(true, granted(1), facts(S::source_then_target));
  EXPECT_FALSE(begun.fsm.is_in_vain({S::source_then_target, 0, 100}));
  EXPECT_TRUE(begun.fsm.is_in_vain({S::source, 0, 100})) << "one is enough";
  EXPECT_EQ(begun.fsm.on_locked(false, refused(errc::cancelled), facts(S::source)).what,
            Action::finish);
  EXPECT_TRUE(begun.fsm.granted());
}

TEST(LeasedAcquireFsm, ALostGrantMeansAnotherStart) {
  Begun begun(S::source_then_target);
  begun.fsm.on_locked(true, granted(1), facts(S::source_then_target));
  const auto step =
      begun.fsm.on_locked(false, refused(errc::cancelled), half_lost(S::source_then_target));
  EXPECT_EQ(step.what, Action::read);
  EXPECT_TRUE(step.gives_back);
  Begun once(S::source, 0, true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(once.fsm.on_locked(true, granted(1), half_lost(S::source)).what, Action::read);
    EXPECT_EQ(once.fsm.on_read({}, facts(S::source)).what, Action::lock_source);
  }
  const auto last = once.fsm.on_locked(true, granted(1), half_lost(S::source));
  EXPECT_EQ(last.what, Action::finish);
  EXPECT_TRUE(last.gives_back);
  EXPECT_EQ(once.fsm.error(), errc::timed_out);
}

TEST(LeasedAcquireFsm, AGateOutOfReachIsAskedAgainForAWhile) {
  Fsm fsm(limits());
  fsm.begin();
  const auto failure = make_failure(errc::unavailable, "no answer");
  auto now = facts(S::source);
  EXPECT_EQ(fsm.on_read(failure, now).what, Action::pause);
  EXPECT_EQ(fsm.on_woken(now).what, Action::read);
  now.now += seconds(6);
  EXPECT_EQ(fsm.on_read(failure, now).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::unavailable);
  Fsm refusing(limits());
  refusing.begin();
  EXPECT_EQ(refusing.on_read(make_failure(errc::no_gate, "none"), now).what, Action::finish);
  EXPECT_EQ(refusing.error(), errc::no_gate);
}

TEST(LeasedAcquireFsm, ARefusalOfAStoreIsThatOfTheAcquire) {
  Begun begun(S::source);
  EXPECT_EQ(begun.fsm.on_locked(true, refused(errc::timed_out), facts(S::source)).what,
            Action::finish);
  EXPECT_EQ(begun.fsm.error(), errc::timed_out);
}

TEST(LeasedAcquireFsm, ACancelIsToldAtOnceAndOnce) {
  Begun begun(S::source);
  EXPECT_FALSE(begun.fsm.on_deadline()) << "the store's own acquire tells of it";
  EXPECT_TRUE(begun.fsm.on_cancel());
  EXPECT_FALSE(begun.fsm.on_cancel());
  EXPECT_EQ(begun.fsm.on_locked(true, granted(1), facts(S::source)).what, Action::finish);
  EXPECT_FALSE(begun.fsm.granted());
  EXPECT_EQ(begun.fsm.error(), errc::cancelled);
}

}  // namespace
}  // namespace dlock::core::migration
