// SPDX-License-Identifier: Apache-2.0
//
// Scheduled runs on every store that keeps them: by its own clock, once per tick.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

using Reason = RunRefusal::Reason;

class ScheduleContract : public Contract {
 protected:
  /// False: the store cannot, and says so.
  bool keeps_runs() {
    auto locks = open();
    Schedule schedule(locks, "asks", {.at_most_for = 1s});
    const auto error = error_of([&] { (void)schedule.try_begin(); });
    if (!error) return true;
    EXPECT_EQ(error, errc::not_supported);
    return false;
  }
};
DLOCK_CONTRACT(ScheduleContract);

TEST_P(ScheduleContract, TheStoresTimeIsWrittenAndGoesOn) {
  if (!keeps_runs()) return;
  auto locks = open();
  auto others = open();
  Schedule schedule(locks, "job", {.at_most_for = 10s});
  std::chrono::milliseconds last{0};
  for (int i = 0; i < 5; ++i) {
    RunRefusal why;
    auto run = schedule.try_begin(&why);
    ASSERT_TRUE(run) << to_string(why.reason);
    EXPECT_GE(run->record().started, last);
    EXPECT_FALSE(run->finish(true));
    const auto seen = Schedule::last(others, "job");
    ASSERT_TRUE(seen);
    EXPECT_GE(*seen->ended, seen->started);
    last = *seen->ended;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LT(std::chrono::abs(now - last), 1min) << "here all clocks are one";
}

TEST_P(ScheduleContract, OfManyWhoComeInOneTickOneRuns) {
  if (!keeps_runs()) return;
  std::atomic<int> runs = 0;
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 8; ++i) {
      all.emplace_back([&] {
        auto locks = open();
        Schedule schedule(locks, "job", {.at_most_for = 60s, .every = 24h * 300});
        RunRefusal why;
        if (schedule.run([](const std::stop_token&) {}, &why)) {
          ++runs;
        } else if (why.reason == Reason::was_run || why.reason == Reason::running) {
          ++refused;
        }
      });
    }
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(refused, 7);
}

TEST_P(ScheduleContract, ARunIsKnownWhenItsLockHasBeenGivenBack) {
  if (!keeps_runs()) return;
  auto locks = open();
  Schedule schedule(locks, "job", {.at_most_for = 60s, .at_least_for = 30s});
  ASSERT_TRUE(schedule.run([](const std::stop_token&) {}));
  EXPECT_TRUE(becomes_free("job"));
  auto others = open();
  Schedule again(others, "job", {.at_most_for = 60s, .at_least_for = 30s});
  RunRefusal why;
  EXPECT_FALSE(again.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::too_early);
}

TEST_P(ScheduleContract, ADeadRunIsFollowedAfterItsAtMostForAndItsEndCountsForNothing) {
  if (!keeps_runs()) return;
  auto locks = open();
  Schedule schedule(locks, "job", {.at_most_for = 700ms, .every = 24h * 300});
  auto dead = schedule.try_begin();
  ASSERT_TRUE(dead);
  harness().take_away(observer(), url(), "job");
  RunRefusal why;
  auto others = open();
  Schedule follower(others, "job", {.at_most_for = 60s, .every = 24h * 300});
  EXPECT_FALSE(follower.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::running);
  std::optional<ScheduledRun> run;
  ASSERT_TRUE(eventually(patience(), [&] { return (run = follower.try_begin()).has_value(); }));
  EXPECT_EQ(run->record().tick, dead->record().tick);
  EXPECT_GE(run->record().started, dead->record().at_most_until);
  EXPECT_EQ(dead->finish(true), errc::lock_lost);
  EXPECT_EQ(Schedule::last(others, "job")->owner.id, run->record().owner.id);
}

}  // namespace
}  // namespace dlock::contract
