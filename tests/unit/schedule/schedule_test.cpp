// SPDX-License-Identifier: Apache-2.0
//
// Schedule on the memory store: who runs, what is written of it.
#include "dlock/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "dlock/memory.hpp"
#include "testkit/await.hpp"

namespace dlock::schedule_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testkit::eventually;
using testkit::patience;
using Outcome = RunRecord::Outcome;
using Reason = RunRefusal::Reason;

LockManager open(const std::string& store) {
  OpenOptions options;
  options.backends = {&memory::backend()};
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open("memory://" + store, options);
}

ScheduleOptions yearly() { return {.at_most_for = 10s, .every = 24h * 300}; }

TEST(Schedule, WhoComesSecondInATickDoesNotRun) {
  auto locks = open("schedule-second");
  Schedule schedule(locks, "job", yearly());
  int runs = 0;
  RunRefusal why;
  EXPECT_TRUE(schedule.run([&](const std::stop_token&) { ++runs; }, &why));
  EXPECT_EQ(why.reason, Reason::none);
  EXPECT_FALSE(schedule.run([&](const std::stop_token&) { ++runs; }, &why));
  EXPECT_EQ(why.reason, Reason::was_run);
  EXPECT_EQ(why.last->outcome, Outcome::succeeded);
  EXPECT_EQ(why.last->token, 1U);
  EXPECT_TRUE(why.last->ended);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(locks.status("job").held);
  EXPECT_EQ(Schedule::last(locks, "job")->owner.id, why.last->owner.id);
  EXPECT_FALSE(Schedule::last(locks, "other"));
}

TEST(Schedule, OfManyAtOnceOneRuns) {
  auto locks = open("schedule-many");
  std::atomic<int> runs = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 20; ++i) {
      all.emplace_back([&] {
        Schedule schedule(locks, "job", yearly());
        schedule.run([&](const std::stop_token&) { ++runs; });
      });
    }
  }
  EXPECT_EQ(runs, 1);
}

TEST(Schedule, WhileItRunsItHoldsTheLock) {
  auto locks = open("schedule-holds");
  Schedule schedule(locks, "job", {.at_most_for = 10s});
  auto run = schedule.try_begin();
  ASSERT_TRUE(run);
  EXPECT_TRUE(locks.status("job").held);
  EXPECT_EQ(run->handle().token(), run->record().token);
  RunRefusal why;
  EXPECT_FALSE(schedule.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::running);
  EXPECT_FALSE(run->finish(true, 0));
  EXPECT_FALSE(locks.status("job").held);
  EXPECT_FALSE(run->finish(true)) << "a second time does nothing";
  EXPECT_TRUE(schedule.try_begin()) << "no ticks, no at_least_for";
}

TEST(Schedule, AtLeastForHoldsAfterTheRunHasEnded) {
  auto locks = open("schedule-least");
  Schedule schedule(locks, "job", {.at_most_for = 10s, .at_least_for = 300ms});
  const auto began = testkit::Clock::now();
  ASSERT_TRUE(schedule.run([](const std::stop_token&) {}));
  RunRefusal why;
  EXPECT_FALSE(schedule.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::too_early);
  EXPECT_TRUE(eventually(patience(), [&] { return schedule.try_begin().has_value(); }));
  EXPECT_GE(testkit::Clock::now() - began, 299ms);
}

TEST(Schedule, AfterAtMostForTheWorkIsToldToStop) {
  auto locks = open("schedule-most");
  Schedule schedule(locks, "job", {.at_most_for = 100ms, .every = 24h});
  bool told = false;
  EXPECT_THROW(schedule.run([&](const std::stop_token& stop) {
    told = eventually(patience(), [&] { return stop.stop_requested(); });
    throw std::runtime_error("stopped");
  }),
               std::runtime_error);
  EXPECT_TRUE(told);
  EXPECT_EQ(Schedule::last(locks, "job")->outcome, Outcome::overran);
}

TEST(Schedule, WorkThatThrowsHasFailedAndTheLockIsGivenBack) {
  auto locks = open("schedule-throws");
  Schedule schedule(locks, "job", yearly());
  EXPECT_THROW(schedule.run([](const std::stop_token&) { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(Schedule::last(locks, "job")->outcome, Outcome::failed);
  EXPECT_FALSE(locks.status("job").held);
}

TEST(Schedule, ALostLockStopsTheRunAndItsTickIsRunAgainAfterAtMostFor) {
  auto locks = open("schedule-lost");
  auto admin = open("schedule-lost");
  Schedule schedule(locks, "job", {.at_most_for = 400ms, .every = 24h * 300});
  auto run = schedule.try_begin();
  ASSERT_TRUE(run);
  admin.evict("job", *run->handle().token(), {.at_once = true});
  EXPECT_TRUE(eventually(patience(), [&] { return run->stop_token().stop_requested(); }));
  EXPECT_EQ(run->finish(true), errc::lock_lost);
  EXPECT_EQ(Schedule::last(locks, "job")->outcome, Outcome::lost);
  RunRefusal why;
  EXPECT_FALSE(schedule.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::running);
  std::optional<ScheduledRun> again;
  EXPECT_TRUE(eventually(patience(), [&] { return (again = schedule.try_begin()).has_value(); }));
  EXPECT_EQ(again->record().tick, run->record().tick);
}

// G29: the end of an old run does not write over a later one.
TEST(Schedule, G29_WhoWasTakenOverWritesNothing) {
  auto locks = open("schedule-aba");
  auto admin = open("schedule-aba");
  Schedule schedule(locks, "job", {.at_most_for = 50ms});
  auto old = schedule.try_begin();
  ASSERT_TRUE(old);
  admin.evict("job", *old->handle().token(), {.at_once = true});
  std::optional<ScheduledRun> later;
  ASSERT_TRUE(eventually(patience(), [&] { return (later = schedule.try_begin()).has_value(); }));
  EXPECT_EQ(old->finish(true), errc::lock_lost);
  EXPECT_EQ(Schedule::last(locks, "job")->owner.id, later->record().owner.id);
  later->finish(true);
  EXPECT_EQ(Schedule::last(locks, "job")->outcome, Outcome::succeeded);
}

TEST(Schedule, APlainHolderOfTheLockKeepsItFromRunning) {
  auto locks = open("schedule-plain");
  const auto held = locks.lock("job")->acquire();
  Schedule schedule(locks, "job", yearly());
  RunRefusal why;
  EXPECT_FALSE(schedule.try_begin(&why));
  EXPECT_EQ(why.reason, Reason::busy);
}

TEST(Schedule, WhatCannotBeIsRefusedWhenItIsMade) {
  auto locks = open("schedule-refused");
  try {
    const Schedule schedule(locks, "job", {.at_most_for = 1s, .at_least_for = 2s});
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_THAT(error.server_text(), HasSubstr("at-least-for 2s"));
  }
  EXPECT_THROW(Schedule(locks, "bad name\n", yearly()), LockError);
}

}  // namespace
}  // namespace dlock::schedule_tests
