// SPDX-License-Identifier: Apache-2.0
//
// Leaders whose store fails, whose lock is taken, who are cancelled: never two told that they lead,
// and always somebody in the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>

#include "tests/unit/leader/support.hpp"

namespace dlock::leader_tests {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(LeaderTrouble, ALostLeadEndsTheWorkAndItStandsAgain) {
  testing::Store store;
  auto locks = store.open(quiet());
  Diary diary;
  Leader leader(locks, "l", until_stopped, diary.options());
  leader.campaign();
  ASSERT_TRUE(diary.reaches(Kind::elected));
  ASSERT_TRUE(store.lose("l", LossReason::evicted));
  ASSERT_TRUE(diary.reaches(Kind::elected, 2));
  leader.resign();
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::elected, Kind::lost, Kind::elected, Kind::resigned));
  EXPECT_EQ(diary.events().at(1).reason, LossReason::evicted);
}

TEST(LeaderTrouble, UnsafeTimesAreRefusedWhenItIsMade) {
  testing::Store store;
  auto locks = store.open(quiet());
  LeaderOptions options;
  options.times = {.lease = 10s, .renew_deadline = 10s};
  try {
    const Leader leader(locks, "l", {}, options);
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_EQ(error.lock(), "l");
  }
}

// G03: no renewal succeeds any more, and no answer comes that could say so.
TEST(LeaderTrouble, G03_CutOffItGivesUpByItsOwnClockWhileTheLockIsStillItsOwn) {
  testing::Store store(testing::Times{.lease = 3s, .patience = 100ms});
  auto locks = store.open(quiet());
  std::atomic<bool> held_at_stop = false;
  std::atomic<bool> led_at_stop = true;
  Diary diary;
  Leader leader(
      locks, "l",
      [&](const std::stop_token& stop) {
        until_stopped(stop);
        held_at_stop = store.held("l").has_value();
        led_at_stop = leader.is_leader();
      },
      diary.options());
  leader.campaign();
  ASSERT_TRUE(diary.reaches(Kind::elected));
  const auto cut = testkit::Clock::now();
  store.out_of_reach();
  ASSERT_TRUE(diary.reaches(Kind::lost));
  EXPECT_LT(testkit::Clock::now() - cut, 3s);
  EXPECT_TRUE(held_at_stop) << "stopped before the lease was over";
  const auto events = diary.events();
  const auto lost = std::find_if(events.begin(), events.end(),
                                 [](const auto& event) { return event.kind == Kind::lost; });
  ASSERT_NE(lost, events.end());
  EXPECT_EQ(lost->reason, LossReason::none) << "the lock itself was not lost yet";
  EXPECT_FALSE(led_at_stop);
  store.reachable();
  EXPECT_TRUE(diary.reaches(Kind::elected, 2));
  leader.resign();
}

TEST(LeaderTrouble, G16_WithoutAStoreTheWorkIsNotEntered) {
  testing::Store store(kShort);
  auto locks = store.open(quiet());
  store.out_of_reach();
  std::atomic<bool> entered = false;
  Diary diary;
  Leader leader(
      locks, "l", [&](const std::stop_token&) { entered = true; }, diary.options());
  leader.campaign();
  ASSERT_TRUE(diary.reaches(Kind::retrying, 2));
  EXPECT_FALSE(entered);
  EXPECT_EQ(diary.events().front().error, errc::unavailable);
  store.reachable();
  leader.wait();
  EXPECT_TRUE(entered);
}

TEST(LeaderTrouble, G16_SomebodyElsesLeadIsNoFailure) {
  testing::Store store(kShort);
  auto locks = store.open(quiet());
  ASSERT_TRUE(store.hold("l"));
  std::atomic<bool> entered = false;
  Diary diary;
  Leader leader(
      locks, "l", [&](const std::stop_token&) { entered = true; }, diary.options());
  leader.campaign();
  EXPECT_FALSE(eventually(testkit::within(300ms), [&] { return entered.load(); }));
  store.let_go("l");
  leader.wait();
  EXPECT_TRUE(entered);
}

TEST(LeaderTrouble, WhatDoesNotPassIsToldAndItGivesUp) {
  testing::Store store;
  auto locks = store.open(quiet());
  store.refuse(errc::access_denied, "not you");
  Diary diary;
  Leader leader(locks, "l", {}, diary.options());
  leader.campaign();
  EXPECT_EQ(leader.wait(), errc::access_denied);
  EXPECT_THAT(diary.kinds(), ElementsAre(Kind::gave_up));
  EXPECT_EQ(diary.events().front().text, "not you");
}

// G27: a candidate that is interrupted in whichever way stands again, or says that it does not.
TEST(LeaderTrouble, G27_SomebodyLeadsAfterEveryRoundOfTrouble) {
  testing::Store store(kShort);
  Diary diary;
  std::atomic<int> terms = 0;
  std::vector<LockManager> managers;
  std::vector<std::unique_ptr<Leader>> leaders;
  for (int i = 0; i < 3; ++i) managers.push_back(store.open(quiet()));
  for (auto& locks : managers) {
    leaders.push_back(std::make_unique<Leader>(
        locks, "l",
        [&terms](const std::stop_token& stop) {
          if (++terms % 3 == 0) throw std::runtime_error("thrown");
          until_stopped(stop);
        },
        diary.options(true)));
    leaders.back()->campaign();
  }
  std::atomic<bool> over = false;
  std::atomic<int> both = 0;
  // Odd while the store forgets a lock: the next may have it before the word is with who had it.
  std::atomic<int> forgetting = 0;
  // I9: one that leads at both ends of a moment led all through it.
  std::jthread watcher([&] {
    while (!over) {
      for (std::size_t i = 0; i < leaders.size(); ++i) {
        const int before = forgetting;
        if (before % 2 != 0) continue;
        const auto& other = leaders.at((i + 1) % leaders.size());
        const auto token = leaders.at(i)->token();
        if (!leaders.at(i)->is_leader() || !other->is_leader()) continue;
        if (!leaders.at(i)->is_leader() || leaders.at(i)->token() != token) continue;
        if (forgetting == before) ++both;
      }
    }
  });
  for (int round = 0; round < 40; ++round) {
    const auto before = terms.load();
    ASSERT_TRUE(eventually(patience(), [&] { return store.held("l").has_value(); })) << round;
    if (round % 10 == 9) {
      store.out_of_reach();
      ASSERT_TRUE(eventually(patience(), [&] {
        return std::none_of(leaders.begin(), leaders.end(),
                            [](const auto& leader) { return leader->is_leader(); });
      }));
      store.reachable();
    } else {
      ++forgetting;
      store.lose("l", LossReason::session_ended);  // until its holder knows
      ++forgetting;
    }
    ASSERT_TRUE(eventually(patience(), [&] { return terms > before; })) << round;
  }
  over = true;
  watcher.join();
  EXPECT_EQ(both, 0);
  EXPECT_THAT(diary.kinds(), Not(Contains(Kind::gave_up)));
}

// G35: cancelled at any moment, nothing is left in the store, and it is not elected afterwards.
TEST(LeaderTrouble, G35_ACancelledCampaignLeavesNothingBehind) {
  testing::Store store;
  auto locks = store.open(quiet());
  std::minstd_rand random(1);
  for (int i = 0; i < 200; ++i) {
    const bool taken = i % 2 == 0;
    ASSERT_TRUE(!taken || store.hold("l"));
    Diary diary;
    Leader leader(locks, "l", until_stopped, diary.options());
    std::stop_source stop;
    leader.campaign(stop.get_token());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    stop.request_stop();
    EXPECT_FALSE(leader.wait());
    EXPECT_FALSE(leader.is_leader());
    if (taken) store.let_go("l");
    ASSERT_TRUE(
        eventually(patience(), [&] { return !store.held("l") && store.waiting("l") == 0; }));
  }
}

// G48: destroyed at any moment of its campaign, it ends within the time of one request.
TEST(LeaderTrouble, G48_DestroyedAtAnyMomentItEndsAndNothingIsTouchedAfterwards) {
  testing::Store store(kShort);
  auto locks = store.open(quiet());
  auto other = store.open(quiet());
  std::minstd_rand random(2);
  for (int i = 0; i < 100; ++i) {
    if (i % 4 == 3) store.delay(20ms);
    {
      Leader leader(locks, "l", until_stopped, {});
      leader.campaign();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
    store.delay(0ms);
  }
  EXPECT_TRUE(other.lock("l")->try_acquire({.wait = 10s}));
}

}  // namespace
}  // namespace dlock::leader_tests
