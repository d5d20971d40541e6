// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/release_fsm.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = ReleaseFsm::Action;

const TimePoint kStart{seconds(1000)};

ReleaseFsm::Limits limits() {
  ReleaseFsm::Limits result;
  result.request_timeout = seconds(3);
  result.search_pause = seconds(2);
  return result;
}

TEST(ReleaseFsm, OneRequestWhenAllGoesWell) {
  ReleaseFsm fsm(limits());
  const auto step = fsm.begin(kStart);
  EXPECT_EQ(step.what, Action::release);
  EXPECT_FALSE(step.search);
  EXPECT_EQ(step.until, kStart + seconds(3));
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::released, kStart).what, Action::finish);
  EXPECT_EQ(fsm.outcome(), ReleaseStatus::released);
}

TEST(ReleaseFsm, SaysWhenItWasNotOursAnyMore) {
  ReleaseFsm fsm(limits());
  fsm.begin(kStart);
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::not_holder, kStart).what, Action::finish);
  EXPECT_EQ(fsm.outcome(), ReleaseStatus::not_holder);
}

TEST(ReleaseFsm, IsTriedAgainUntilTheLeaseIsOver) {
  auto bounded = limits();
  bounded.lease_over = kStart + seconds(10);
  ReleaseFsm fsm(bounded);
  auto now = kStart;
  fsm.begin(now);
  auto step = fsm.on_answer(ReleaseStatus::unavailable, now);
  int tries = 0;
  while (step.what != Action::finish) {
    ASSERT_LT(++tries, 100);
    ASSERT_EQ(step.what, Action::pause);
    now = step.until;
    EXPECT_EQ(fsm.on_pause_over(now).what, Action::release);
    step = fsm.on_answer(ReleaseStatus::unknown, now);
  }
  EXPECT_EQ(now, bounded.lease_over);
  EXPECT_FALSE(fsm.outcome());
}

TEST(ReleaseFsm, WithoutALeaseItIsNeverGivenUp) {
  ReleaseFsm fsm(limits());
  auto now = kStart;
  fsm.begin(now);
  for (int i = 0; i < 1000; ++i) {
    const auto step = fsm.on_answer(ReleaseStatus::unavailable, now);
    ASSERT_EQ(step.what, Action::pause);
    EXPECT_LE(step.until - now, seconds(1));
    now = step.until;
  }
}

TEST(ReleaseFsm, LooksForLateCopiesUntilNoneCanArrive) {
  auto doubtful = limits();
  doubtful.late_copies_until = kStart + seconds(5);
  ReleaseFsm fsm(doubtful);
  auto now = kStart;
  EXPECT_TRUE(fsm.begin(now).search);
  auto step = fsm.on_answer(ReleaseStatus::released, now);
  EXPECT_EQ(fsm.outcome(), ReleaseStatus::released);  // told at the first answer
  int searches = 1;
  while (step.what == Action::pause) {
    now = step.until;
    EXPECT_TRUE(fsm.on_pause_over(now).search);
    ++searches;
    step = fsm.on_answer(ReleaseStatus::released, now);
  }
  EXPECT_EQ(now, kStart + seconds(5));  // one last look at the very end
  EXPECT_EQ(searches, 5);
}

TEST(ReleaseFsm, SearchesOnceMoreAfterTheFirstAnswerHoweverLateThatIs) {
  auto doubtful = limits();
  doubtful.late_copies_until = kStart + seconds(5);
  doubtful.lease_over = kStart + std::chrono::minutes(10);
  ReleaseFsm fsm(doubtful);
  fsm.begin(kStart);
  auto now = kStart + seconds(60);
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::unknown, now).what, Action::pause) << "it is not given up";
  now += seconds(1);
  fsm.on_pause_over(now);
  const auto step = fsm.on_answer(ReleaseStatus::not_holder, now);
  ASSERT_EQ(step.what, Action::pause);
  EXPECT_LE(step.until, now + milliseconds(200));
  now = step.until;
  EXPECT_TRUE(fsm.on_pause_over(now).search);
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::released, now).what, Action::finish);
}

TEST(ReleaseFsm, ARefusalIsToldAtOnceAndTriedAgainAFewTimes) {
  ReleaseFsm fsm(limits());
  auto now = kStart;
  auto step = fsm.on_answer(ReleaseStatus::refused, now);
  EXPECT_EQ(fsm.outcome(), ReleaseStatus::refused);
  int tries = 1;
  for (; step.what == Action::pause && tries < 100; ++tries) {
    EXPECT_GE(step.until, now + std::chrono::seconds(1));
    now = step.until;
    step = fsm.on_answer(ReleaseStatus::refused, now);
  }
  EXPECT_EQ(tries, 10);
  EXPECT_LE(now, kStart + std::chrono::minutes(5));
}

TEST(ReleaseFsm, PausesTwiceAsLongAfterEachFailureUpToASecond) {
  ReleaseFsm fsm(limits());
  for (const int pause : {25, 50, 100, 200, 400, 800, 1000, 1000}) {
    const auto step = fsm.on_answer(ReleaseStatus::unavailable, kStart);
    EXPECT_EQ(step.what, Action::pause);
    EXPECT_EQ(step.until, kStart + milliseconds(pause));
  }
}

TEST(ReleaseFsm, PausesTwiceAsLongAfterEachRefusalUpToThirtySeconds) {
  ReleaseFsm fsm(limits());
  for (const int pause : {1, 2, 4, 8, 16, 30, 30, 30, 30}) {
    const auto step = fsm.on_answer(ReleaseStatus::refused, kStart);
    EXPECT_EQ(step.what, Action::pause);
    EXPECT_EQ(step.until, kStart + seconds(pause));
  }
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::refused, kStart).what, Action::finish);
}

TEST(ReleaseFsm, EndsWhenTheLeaseOrTheSearchIsOverAndNotBefore) {
  auto bounded = limits();
  bounded.lease_over = kStart + milliseconds(10);
  ReleaseFsm fsm(bounded);
  auto step = fsm.on_answer(ReleaseStatus::unavailable, kStart + milliseconds(9));
  EXPECT_EQ(step.what, Action::pause);
  EXPECT_EQ(step.until, bounded.lease_over);
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::unavailable, bounded.lease_over).what, Action::finish);
  step = fsm.on_answer(ReleaseStatus::refused, kStart + milliseconds(9));
  EXPECT_EQ(step.what, Action::pause);
  EXPECT_EQ(step.until, bounded.lease_over);
  EXPECT_EQ(fsm.on_answer(ReleaseStatus::refused, bounded.lease_over).what, Action::finish);

  auto doubtful = limits();
  doubtful.late_copies_until = kStart + milliseconds(10);
  ReleaseFsm search(doubtful);
  step = search.on_answer(ReleaseStatus::released, kStart);
  EXPECT_EQ(step.until, kStart + milliseconds(200));
  step = search.on_answer(ReleaseStatus::released, kStart + milliseconds(9));
  EXPECT_EQ(step.what, Action::pause);
  EXPECT_EQ(step.until, *doubtful.late_copies_until);
  step = search.on_answer(ReleaseStatus::released, *doubtful.late_copies_until);
  EXPECT_EQ(step.what, Action::finish);
}

TEST(ReleaseFsm, TheFirstOutcomeStandsWhateverTheSearchFinds) {
  auto doubtful = limits();
  doubtful.late_copies_until = kStart + seconds(5);
  ReleaseFsm fsm(doubtful);
  fsm.begin(kStart);
  fsm.on_answer(ReleaseStatus::not_holder, kStart);
  fsm.on_pause_over(kStart + seconds(2));
  fsm.on_answer(ReleaseStatus::released, kStart + seconds(2));
  EXPECT_EQ(fsm.outcome(), ReleaseStatus::not_holder) << "it was lost before";
}

}  // namespace
}  // namespace dlock::core
