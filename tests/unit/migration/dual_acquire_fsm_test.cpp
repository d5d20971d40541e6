// SPDX-License-Identifier: Apache-2.0
//
// One acquire in mode dual, event by event.
#include <gtest/gtest.h>

#include "dlock/spi/error.hpp"
#include "migration/dual/dual_acquire_fsm.hpp"

namespace dlock::core::migration {
namespace {

using Action = DualAcquireFsm::Action;
using Good = DualAcquireFsm::Good;
using std::chrono::seconds;

const TimePoint kNow{std::chrono::hours(1)};

DualAcquireFsm::Limits patient() {
  DualAcquireFsm::Limits limits;
  limits.connect_timeout = seconds(15);
  return limits;
}
DualAcquireFsm::Limits once() {
  auto limits = patient();
  limits.once = true;
  return limits;
}
DualAcquireFsm::Outcome granted(std::uint64_t token) {
  DualAcquireFsm::Outcome outcome;
  outcome.granted = true;
  outcome.token = token;
  return outcome;
}
DualAcquireFsm::Outcome refused(errc error) {
  DualAcquireFsm::Outcome outcome;
  outcome.error = error;
  outcome.failure = make_failure(error, "why");
  return outcome;
}
RecordAnswer raised(RecordStatus status) {
  RecordAnswer answer;
  answer.status = status;
  if (status != RecordStatus::done) answer.failure = make_failure(errc::unavailable, "away");
  return answer;
}

TEST(DualAcquireFsm, PhaseZeroLocksTheSourceAboveTheFloor) {
  DualAcquireFsm client(0, patient());
  EXPECT_EQ(client.begin().what, Action::enter);
  EXPECT_EQ(client.on_entered({}, 10, kNow, 0).what, Action::lock_source);
  EXPECT_EQ(client.min_token(), 10U);
  EXPECT_EQ(client.on_source(granted(11), Good::yes, kNow).what, Action::settle);
  EXPECT_EQ(client.token(), 11U);
  EXPECT_EQ(client.on_settled({}, Good::yes, kNow, 0).what, Action::finish);
  EXPECT_TRUE(client.granted());
}

TEST(DualAcquireFsm, PhaseTwoLocksTheTargetAboveTheFloor) {
  DualAcquireFsm client(2, patient());
  EXPECT_EQ(client.on_entered({}, 10, kNow, 0).what, Action::lock_target);
  EXPECT_EQ(client.min_token(), 10U);
  EXPECT_EQ(client.on_target(granted(12), Good::yes, kNow).what, Action::settle);
  EXPECT_EQ(client.token(), 12U);
}

TEST(DualAcquireFsm, PhaseOneLocksTheSourceThenTheTargetAndRaisesTheSource) {
  DualAcquireFsm client(1, patient());
  EXPECT_EQ(client.on_entered({}, 10, kNow, 1).what, Action::lock_source);
  EXPECT_EQ(client.min_token(), 10U);
  EXPECT_EQ(client.on_source(granted(20), Good::yes, kNow).what, Action::lock_target);
  EXPECT_EQ(client.min_token(), 20U);
  EXPECT_EQ(client.on_target(granted(31), Good::yes, kNow).what, Action::raise_source);
  EXPECT_EQ(client.token(), 31U);
  EXPECT_EQ(client.on_raised(raised(RecordStatus::done), Good::yes, kNow, 0).what, Action::settle);
  EXPECT_EQ(client.on_settled({}, Good::yes, kNow, 0).what, Action::finish);
  EXPECT_TRUE(client.granted());
}

TEST(DualAcquireFsm, ASourceThatForgotItsTokensStaysBelowTheFloorNoLonger) {
  DualAcquireFsm client(1, patient());
  client.on_entered({}, 100, kNow, 0);
  client.on_source(granted(3), Good::yes, kNow);  // its backend knows no min_token for it
  EXPECT_EQ(client.min_token(), 100U);
}

TEST(DualAcquireFsm, WhatIsLostOnTheWayBeginsAnew) {
  for (const auto good : {Good::half_lost, Good::not_registered}) {
    DualAcquireFsm client(1, patient());
    client.on_entered({}, 0, kNow, 0);
    client.on_source(granted(1), Good::yes, kNow);
    EXPECT_EQ(client.on_target(granted(2), good, kNow).what, Action::enter);
    EXPECT_EQ(client.on_entered({}, 0, kNow, 0).what, Action::lock_source);
    EXPECT_EQ(client.min_token(), 0U);
    client.on_source(granted(3), Good::yes, kNow);
    client.on_target(granted(4), Good::yes, kNow);
    EXPECT_EQ(client.on_raised(raised(RecordStatus::done), good, kNow, 0).what, Action::enter);
    client.on_entered({}, 0, kNow, 0);
    client.on_source(granted(5), Good::yes, kNow);
    client.on_target(granted(6), Good::yes, kNow);
    client.on_raised(raised(RecordStatus::done), Good::yes, kNow, 0);
    EXPECT_EQ(client.on_settled({}, good, kNow, 0).what, Action::enter);
    EXPECT_FALSE(client.granted());
  }
}

TEST(DualAcquireFsm, AWaitThatWasEndedBecauseOfALossIsNoError) {
  DualAcquireFsm client(1, patient());
  client.on_entered({}, 0, kNow, 0);
  client.on_source(granted(1), Good::yes, kNow);
  EXPECT_EQ(client.on_target(refused(errc::cancelled), Good::half_lost, kNow).what, Action::enter);
}

TEST(DualAcquireFsm, ARaiseIsRepeatedAsLongAsTheLocksAreGood) {
  DualAcquireFsm client(1, patient());
  client.on_entered({}, 0, kNow, 0);
  client.on_source(granted(1), Good::yes, kNow);
  client.on_target(granted(2), Good::yes, kNow);
  for (const auto status : {RecordStatus::unknown, RecordStatus::unavailable}) {
    const auto pause = client.on_raised(raised(status), Good::yes, kNow, 0);
    ASSERT_EQ(pause.what, Action::pause);
    EXPECT_GT(pause.until, kNow);
    EXPECT_EQ(client.on_woken(pause.until).what, Action::raise_source);
  }
  EXPECT_EQ(client.on_raised(raised(RecordStatus::conflict), Good::yes, kNow, 0).what,
            Action::enter);
}

TEST(DualAcquireFsm, APhaseThatIsNotAdmittedIsToldAtOnce) {
  DualAcquireFsm client(2, patient());
  EXPECT_EQ(client.on_entered(make_failure(errc::window_closed, "phase"), 0, kNow, 0).what,
            Action::finish);
  EXPECT_FALSE(client.granted());
  EXPECT_EQ(client.error(), errc::window_closed);
  EXPECT_EQ(client.failure().text, "phase");
}

TEST(DualAcquireFsm, AWindowOutOfReachIsAskedAgainUntilPatienceEnds) {
  DualAcquireFsm client(0, patient());
  const auto away = make_failure(errc::unavailable, "away");
  const auto pause = client.on_entered(away, 0, kNow, 0);
  ASSERT_EQ(pause.what, Action::pause);
  EXPECT_EQ(client.on_woken(pause.until).what, Action::enter);
  EXPECT_EQ(client.on_entered(away, 0, kNow + seconds(20), 0).what, Action::finish);
  EXPECT_EQ(client.error(), errc::unavailable);
}

TEST(DualAcquireFsm, WithWaitZeroNobodyIsAskedTwice) {
  DualAcquireFsm held(1, once());
  held.on_entered({}, 0, kNow, 0);
  held.on_source(granted(1), Good::yes, kNow);
  EXPECT_EQ(held.on_target(refused(errc::timed_out), Good::yes, kNow).what, Action::finish);
  EXPECT_EQ(held.error(), errc::timed_out);
  DualAcquireFsm lost(1, once());
  lost.on_entered({}, 0, kNow, 0);
  EXPECT_EQ(lost.on_source(granted(1), Good::not_registered, kNow).what, Action::finish);
  EXPECT_EQ(lost.error(), errc::not_registered);
  DualAcquireFsm away(0, once());
  EXPECT_EQ(away.on_entered(make_failure(errc::unavailable, ""), 0, kNow, 0).what, Action::finish);
}

TEST(DualAcquireFsm, WhoGivesUpIsToldOnceAndKeepsNothing) {
  DualAcquireFsm client(1, patient());
  client.on_entered({}, 0, kNow, 0);
  EXPECT_TRUE(client.on_cancel());
  EXPECT_FALSE(client.on_cancel());
  EXPECT_EQ(client.on_source(granted(1), Good::yes, kNow).what, Action::finish);
  EXPECT_FALSE(client.granted());
  EXPECT_EQ(client.error(), errc::cancelled);
}

TEST(DualAcquireFsm, TheDeadlineIsTheStoresOwnAffairWhileOneIsAsked) {
  auto limits = patient();
  limits.deadline = kNow + seconds(1);
  DualAcquireFsm client(1, limits);
  DualAcquireFsm entering(1, limits);
  EXPECT_TRUE(entering.on_deadline());
  EXPECT_EQ(entering.error(), errc::unavailable) << "no store has said that anything holds it";
  client.on_entered({}, 0, kNow, 0);
  EXPECT_FALSE(client.on_deadline());
  EXPECT_EQ(client.on_source(refused(errc::timed_out), Good::yes, limits.deadline).what,
            Action::finish);
  EXPECT_EQ(client.error(), errc::timed_out);
}

}  // namespace
}  // namespace dlock::core::migration
