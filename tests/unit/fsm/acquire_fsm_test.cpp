// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/acquire_fsm.hpp"

#include <gtest/gtest.h>

#include "dlock/spi/error.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = AcquireFsm::Action;

const TimePoint kStart{seconds(1000)};

AcquireFsm::Limits limits() {
  AcquireFsm::Limits result;
  result.connect_timeout = seconds(15);
  return result;
}

ClaimAnswer answer(ClaimStatus status) {
  ClaimAnswer result;
  result.status = status;
  return result;
}

AcquireFsm::Step give(AcquireFsm& fsm, ClaimStatus status, TimePoint now = kStart) {
  return fsm.on_answer(answer(status), true, now, 0);
}

TEST(AcquireFsm, GrantedAtOnce) {
  AcquireFsm fsm(limits());
  EXPECT_EQ(fsm.begin(kStart).what, Action::claim);
  EXPECT_EQ(give(fsm, ClaimStatus::granted).what, Action::finish);
  EXPECT_TRUE(fsm.granted());
  EXPECT_FALSE(fsm.must_withdraw());
}

TEST(AcquireFsm, ARefusedGrantIsGivenBackAndItsReasonTold) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  const auto step = fsm.on_refused_grant(make_failure(errc::token_regressed, "5 after 9"));
  EXPECT_EQ(step.what, Action::finish);
  EXPECT_FALSE(fsm.granted());
  EXPECT_EQ(fsm.error(), errc::token_regressed);
  EXPECT_EQ(fsm.failure().text, "5 after 9");
  EXPECT_TRUE(fsm.must_withdraw());

  AcquireFsm cancelled(limits());
  cancelled.begin(kStart);
  EXPECT_TRUE(cancelled.on_cancel());
  cancelled.on_refused_grant(make_failure(errc::token_regressed, ""));
  EXPECT_EQ(cancelled.error(), errc::cancelled) << "told already";
  EXPECT_TRUE(cancelled.must_withdraw());
}

TEST(AcquireFsm, WaitsAndClaimsAgainWhenWoken) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_EQ(give(fsm, ClaimStatus::waiting).what, Action::wait);
  EXPECT_EQ(fsm.on_woken(kStart + seconds(5)).what, Action::claim);
  EXPECT_EQ(give(fsm, ClaimStatus::granted).what, Action::finish);
  EXPECT_TRUE(fsm.granted());
}

TEST(AcquireFsm, OnceNeitherWaitsNorTriesAgain) {
  auto once = limits();
  once.once = true;
  AcquireFsm waiting(once);
  waiting.begin(kStart);
  EXPECT_EQ(give(waiting, ClaimStatus::waiting).what, Action::finish);
  EXPECT_EQ(waiting.error(), errc::timed_out);
  EXPECT_TRUE(waiting.must_withdraw());

  AcquireFsm busy(once);
  busy.begin(kStart);
  EXPECT_EQ(give(busy, ClaimStatus::busy).what, Action::finish);
  EXPECT_FALSE(busy.must_withdraw());

  AcquireFsm down(once);
  down.begin(kStart);
  EXPECT_EQ(give(down, ClaimStatus::unavailable).what, Action::finish);
  EXPECT_EQ(down.error(), errc::unavailable);
}

TEST(AcquireFsm, DeadlineInTheWaitEndsItAndWithdraws) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  AcquireFsm fsm(timed);
  fsm.begin(kStart);
  EXPECT_EQ(give(fsm, ClaimStatus::waiting).until, timed.deadline);
  EXPECT_FALSE(fsm.on_deadline());  // the wait ends first
  EXPECT_EQ(fsm.on_woken(timed.deadline).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::timed_out);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, ADeadlineWithoutAnAnswerSaysUnavailableAndGivesALateGrantBack) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  AcquireFsm fsm(timed);
  fsm.begin(kStart);
  EXPECT_TRUE(fsm.on_deadline());
  EXPECT_EQ(fsm.error(), errc::unavailable) << "the store has not said that anything holds it";
  EXPECT_EQ(give(fsm, ClaimStatus::granted, kStart + seconds(3)).what, Action::finish);
  EXPECT_FALSE(fsm.granted());
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, ADeadlineAfterAFailureSaysUnavailableAndWhy) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  auto refused = answer(ClaimStatus::unavailable);
  refused.failure = make_failure(errc::unavailable, "connection refused");

  AcquireFsm pausing(timed);
  pausing.begin(kStart);
  EXPECT_EQ(pausing.on_answer(refused, true, kStart, 0).what, Action::pause);
  EXPECT_EQ(pausing.on_woken(timed.deadline).what, Action::finish);
  EXPECT_EQ(pausing.error(), errc::unavailable);
  EXPECT_EQ(pausing.failure().text, "connection refused");

  AcquireFsm asking(timed);
  asking.begin(kStart);
  asking.on_answer(refused, true, kStart, 0);
  EXPECT_EQ(asking.on_woken(kStart + seconds(1)).what, Action::claim);
  EXPECT_TRUE(asking.on_deadline());
  EXPECT_EQ(asking.error(), errc::unavailable);
  EXPECT_EQ(asking.failure().text, "connection refused");

  AcquireFsm answered(timed);
  answered.begin(kStart);
  answered.on_answer(refused, true, kStart, 0);
  answered.on_woken(kStart + seconds(1));
  give(answered, ClaimStatus::waiting, kStart + seconds(1));
  EXPECT_EQ(answered.on_woken(timed.deadline).what, Action::finish);
  EXPECT_EQ(answered.error(), errc::timed_out) << "it has answered since";
}

TEST(AcquireFsm, AShortWaitLastsUntilTheFirstAnswer) {
  auto brief = limits();
  brief.deadline = kStart + milliseconds(1);
  AcquireFsm held(brief);
  held.begin(kStart);
  EXPECT_EQ(held.first_answer_until({}), kStart + kFirstAnswer);
  EXPECT_EQ(give(held, ClaimStatus::waiting, kStart + milliseconds(3)).what, Action::finish);
  EXPECT_EQ(held.error(), errc::timed_out);

  AcquireFsm free(brief);
  free.begin(kStart);
  EXPECT_EQ(give(free, ClaimStatus::granted, kStart + milliseconds(3)).what, Action::finish);
  EXPECT_TRUE(free.granted());

  AcquireFsm answered(limits());
  answered.begin(kStart);
  give(answered, ClaimStatus::waiting);
  answered.on_woken(kStart + milliseconds(500));
  EXPECT_EQ(answered.first_answer_until({}), TimePoint::min()) << "the store has answered";

  AcquireFsm down(brief);
  down.begin(kStart);
  EXPECT_EQ(down.first_answer_until({make_failure(errc::unavailable, "refused"), kStart}),
            TimePoint::min());
}

TEST(AcquireFsm, AFailureSeenAfterTheDeadlineDoesNotCount) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  const auto down = make_failure(errc::unavailable, "link down");
  AcquireFsm waiting(timed);
  waiting.begin(kStart);
  give(waiting, ClaimStatus::waiting);
  waiting.on_deadline({down, timed.deadline + seconds(3)});
  EXPECT_EQ(waiting.error(), errc::timed_out);

  AcquireFsm asking(timed);
  asking.begin(kStart);
  give(asking, ClaimStatus::waiting);
  asking.on_woken(kStart + seconds(1));
  auto lost = answer(ClaimStatus::unknown);
  lost.failure = down;
  EXPECT_EQ(asking.on_answer(lost, true, timed.deadline + seconds(3), 0).what, Action::finish);
  EXPECT_EQ(asking.error(), errc::timed_out);

  AcquireFsm unanswered(timed);
  unanswered.begin(kStart);
  unanswered.on_deadline({down, timed.deadline + seconds(3)});
  EXPECT_EQ(unanswered.error(), errc::unavailable) << "nothing was answered before it either";
}

TEST(AcquireFsm, ADeadlineWhileTheLinkIsKnownToBeDownSaysUnavailableAndWhy) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  const Trouble down{make_failure(errc::unavailable, "link down"), kStart};
  AcquireFsm claiming(timed);
  claiming.begin(kStart);
  EXPECT_TRUE(claiming.on_deadline(down));
  EXPECT_EQ(claiming.error(), errc::unavailable);
  EXPECT_EQ(claiming.failure().text, "link down");

  AcquireFsm waiting(timed);
  waiting.begin(kStart);
  give(waiting, ClaimStatus::waiting);
  EXPECT_EQ(waiting.on_woken(timed.deadline, down).what, Action::finish);
  EXPECT_EQ(waiting.error(), errc::unavailable);
  EXPECT_EQ(waiting.failure().text, "link down");
}

TEST(AcquireFsm, ADeadlineAfterTheEndChangesNothing) {
  auto timed = limits();
  timed.deadline = kStart + seconds(2);
  AcquireFsm fsm(timed);
  fsm.begin(kStart);
  auto refused = answer(ClaimStatus::failed);
  refused.failure = make_failure(errc::access_denied, "no");
  fsm.on_answer(refused, true, kStart, 0);
  EXPECT_FALSE(fsm.on_deadline({make_failure(errc::unavailable, "link down"), kStart}));
  EXPECT_EQ(fsm.failure().text, "no");
}

TEST(AcquireFsm, CancelIsToldOnceWhateverComesAfterIt) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_TRUE(fsm.on_cancel());
  EXPECT_FALSE(fsm.on_cancel());
  EXPECT_FALSE(fsm.on_deadline());
  EXPECT_FALSE(fsm.on_closed());
  EXPECT_EQ(give(fsm, ClaimStatus::waiting).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::cancelled);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, CancelAfterTheGrantComesTooLate) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  give(fsm, ClaimStatus::granted);
  EXPECT_FALSE(fsm.on_cancel());
  EXPECT_TRUE(fsm.granted());
}

TEST(AcquireFsm, UnavailableIsTriedAgainUntilTheStoreWasOutOfReachForTheConnectTimeout) {
  AcquireFsm fsm(limits());
  auto now = kStart;
  auto step = fsm.begin(now);
  int tries = 0;
  while (step.what != Action::finish) {
    ASSERT_LT(++tries, 1000);
    step = give(fsm, ClaimStatus::unavailable, now);
    if (step.what != Action::pause) break;
    EXPECT_LE(step.until, kStart + seconds(15));
    now = step.until;
    step = fsm.on_woken(now);
  }
  EXPECT_EQ(fsm.error(), errc::unavailable);
  EXPECT_EQ(now, kStart + seconds(15));
  EXPECT_FALSE(fsm.must_withdraw());
}

TEST(AcquireFsm, ForeverWaitsOutAnOutage) {
  auto patient = limits();
  patient.retry.kind = RetryPolicy::Kind::forever;
  AcquireFsm fsm(patient);
  fsm.begin(kStart);
  auto now = kStart;
  for (int i = 0; i < 10'000; ++i) {
    const auto step = give(fsm, ClaimStatus::unavailable, now);
    ASSERT_EQ(step.what, Action::pause);
    now = step.until;
    fsm.on_woken(now);
  }
  EXPECT_GT(now, kStart + seconds(900));
  EXPECT_FALSE(fsm.on_out_of_reach({}));
}

TEST(AcquireFsm, AnAnswerEndsTheOutage) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  give(fsm, ClaimStatus::unavailable, kStart + seconds(14));
  fsm.on_woken(kStart + seconds(14));
  EXPECT_EQ(give(fsm, ClaimStatus::waiting, kStart + seconds(14)).what, Action::wait);
  fsm.on_woken(kStart + seconds(40));
  EXPECT_EQ(give(fsm, ClaimStatus::unavailable, kStart + seconds(41)).what, Action::pause);
}

TEST(AcquireFsm, AnUnknownOutcomeIsClaimedAgainAndRemembered) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_EQ(give(fsm, ClaimStatus::unknown, kStart + seconds(1)).what, Action::pause);
  EXPECT_EQ(fsm.last_unknown(), kStart + seconds(1));
  fsm.on_woken(kStart + seconds(2));
  EXPECT_EQ(give(fsm, ClaimStatus::granted).what, Action::finish);
  EXPECT_TRUE(fsm.granted());
}

TEST(AcquireFsm, AnUnknownOutcomeThatIsGivenUpIsWithdrawn) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  give(fsm, ClaimStatus::unknown);
  EXPECT_FALSE(fsm.on_cancel());
  EXPECT_EQ(fsm.on_woken(kStart).what, Action::finish);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, ABusyAnswerDoesNotForgetALateCopy) {
  auto once = limits();
  AcquireFsm fsm(once);
  fsm.begin(kStart);
  give(fsm, ClaimStatus::unknown);
  fsm.on_woken(kStart);
  give(fsm, ClaimStatus::busy);
  fsm.on_cancel();
  fsm.on_woken(kStart);
  EXPECT_TRUE(fsm.must_withdraw());
  EXPECT_TRUE(fsm.last_unknown());
}

TEST(AcquireFsm, ASealedLockIsMovingAndWhatStandsBehindTheRecordIsWithdrawn) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_EQ(give(fsm, ClaimStatus::sealed).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::moving);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, AFailureIsFinalAndKeepsItsMeaning) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  auto refused = answer(ClaimStatus::failed);
  refused.failure = make_failure(errc::access_denied, "no");
  EXPECT_EQ(fsm.on_answer(refused, true, kStart, 0).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::access_denied);
  EXPECT_EQ(fsm.failure().text, "no");
}

TEST(AcquireFsm, AGrantPastItsOwnDeadlineIsNotBelieved) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_EQ(fsm.on_answer(answer(ClaimStatus::granted), false, kStart, 0).what, Action::pause);
  EXPECT_FALSE(fsm.granted());
  fsm.on_cancel();
  fsm.on_woken(kStart);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, AGrantThatIsLateByAWholeOutageIsNoEndOfPatience) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  const auto back = kStart + limits().connect_timeout + seconds(1);
  EXPECT_EQ(fsm.on_answer(answer(ClaimStatus::granted), false, back, 0).what, Action::pause);
  EXPECT_EQ(fsm.on_woken(back + seconds(1)).what, Action::claim);
  EXPECT_EQ(give(fsm, ClaimStatus::granted, back + seconds(1)).what, Action::finish);
  EXPECT_TRUE(fsm.granted());
}

TEST(AcquireFsm, OutOfReachEndsALongWait) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  give(fsm, ClaimStatus::waiting);
  EXPECT_FALSE(fsm.on_out_of_reach({}));
  EXPECT_EQ(fsm.on_woken(kStart + seconds(1)).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::unavailable);
  EXPECT_TRUE(fsm.must_withdraw());
}

TEST(AcquireFsm, PatienceCountsFromTheSendingOfTheRequestThatFailed) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  ASSERT_EQ(give(fsm, ClaimStatus::unavailable, kStart + seconds(14)).what, Action::pause);
  fsm.on_woken(kStart + milliseconds(14'100));
  EXPECT_EQ(give(fsm, ClaimStatus::unavailable, kStart + seconds(15)).what, Action::finish);
  EXPECT_EQ(fsm.error(), errc::unavailable);
}

TEST(AcquireFsm, ALateGrantIsAnAnswerAndBeginsThePatienceAnew) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  give(fsm, ClaimStatus::unavailable, kStart + seconds(1));
  fsm.on_woken(kStart + seconds(2));
  const auto late = kStart + seconds(14);
  ASSERT_EQ(fsm.on_answer(answer(ClaimStatus::granted), false, late, 0).what, Action::pause);
  fsm.on_woken(late + seconds(1));
  EXPECT_EQ(give(fsm, ClaimStatus::unavailable, late + seconds(2)).what, Action::pause);
}

TEST(AcquireFsm, AnAnswerMakesPausesShortAgain) {
  AcquireFsm fsm(limits());
  fsm.begin(kStart);
  auto now = kStart;
  for (int i = 0; i < 6; ++i) {
    now = give(fsm, ClaimStatus::unavailable, now).until;
    fsm.on_woken(now);
  }
  ASSERT_EQ(give(fsm, ClaimStatus::waiting, now).what, Action::wait);
  fsm.on_woken(now);
  const auto step = give(fsm, ClaimStatus::unavailable, now);
  ASSERT_EQ(step.what, Action::pause);
  EXPECT_LE(step.until - now, limits().retry.base);
}

TEST(AcquireFsm, WhoIsToldThatItIsTakenAtItsDeadlineWaitsNoMore) {
  for (const auto status : {ClaimStatus::waiting, ClaimStatus::busy}) {
    auto bounded = limits();
    bounded.deadline = kStart + seconds(1);
    AcquireFsm fsm(bounded);
    fsm.begin(kStart);
    EXPECT_EQ(give(fsm, status, bounded.deadline).what, Action::finish);
    EXPECT_EQ(fsm.error(), errc::timed_out);
  }
}

}  // namespace
}  // namespace dlock::core
