// SPDX-License-Identifier: Apache-2.0
//
// Whether a run is due.
#include "core/schedule/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outcome = RunRecord::Outcome;
using Reason = RunRefusal::Reason;

ScheduleOptions minutely() { return {.at_most_for = 10min, .at_least_for = 5s, .every = 1min}; }

RunRecord run_of(const ScheduleOptions& options, milliseconds at, Outcome outcome) {
  auto run = begun(options, at, {});
  run.outcome = outcome;
  return run;
}

TEST(ScheduleRules, OptionsThatCannotBeSayWhatToWrite) {
  EXPECT_THAT(refused(minutely()), IsEmpty());
  EXPECT_THAT(refused(ScheduleOptions{}), HasSubstr("at-most-for"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 10s, .at_least_for = 11s}),
              HasSubstr("write 10s or less"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 10min, .at_least_for = 2min, .every = 1min}),
              HasSubstr("above the period"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .every = 1ms}), HasSubstr("every"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .every = 1h, .offset = 1h}),
              HasSubstr("offset 1h: it must be below the period"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .offset = 1h}), HasSubstr("every"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .every = 1h, .early = 1h}),
              HasSubstr("below the period"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .early = 1s}), HasSubstr("every"));
  EXPECT_THAT(refused(ScheduleOptions{.at_most_for = 1s, .retry_failed = true}),
              HasSubstr("every"));
  EXPECT_THAT(
      refused(ScheduleOptions{.at_most_for = 1s, .every = 1h, .again = true, .retry_failed = true}),
      HasSubstr("remove retry-failed"));
}

TEST(ScheduleRules, ARunBelongsToTheLastTickThatIsAtMostEarlyAhead) {
  auto options = minutely();
  EXPECT_EQ(tick_of(59'999ms, options), 1);
  EXPECT_EQ(tick_of(57s, options), 1) << "a clock that is 3 s fast";
  EXPECT_EQ(tick_of(63s, options), 1) << "one that is 3 s slow";
  EXPECT_EQ(tick_of(54s, options), 1) << "a tenth of the period before";
  EXPECT_EQ(tick_of(53'999ms, options), 0);
  EXPECT_EQ(tick_of(113'999ms, options), 1);
  options.offset = 5s;
  EXPECT_EQ(tick_of(118'999ms, options), 1);
  EXPECT_EQ(tick_of(119s, options), 2);
  options.early = 20s;
  EXPECT_EQ(tick_of(104'999ms, options), 1);
  EXPECT_EQ(tick_of(105s, options), 2);
  const ScheduleOptions daily{.at_most_for = 1s, .every = 24h, .offset = 20h};
  EXPECT_EQ(tick_of(1ms, daily), -1) << "before the first one";
  EXPECT_EQ(tick_of(20h - 30s, daily), 0) << "at most 30 s early by default";
  EXPECT_EQ(tick_of(20h - 30'001ms, daily), -1);
}

TEST(ScheduleRules, AManualRunBetweenTicksLeavesTheNextTickToItsTime) {
  const ScheduleOptions daily{.at_most_for = 10min, .every = 24h};
  const auto by_hand = run_of(daily, 15h + 36min, Outcome::succeeded);
  EXPECT_EQ(refusal(by_hand, 16h, daily), Reason::was_run);
  EXPECT_EQ(refusal(by_hand, 24h, daily), Reason::none);
  EXPECT_EQ(by_hand.next_possible(), 24h - 30s);
}

TEST(ScheduleRules, RetryFailedRepeatsATickThatFailedOrOverranOnly) {
  const auto options = minutely();
  auto retry = options;
  retry.retry_failed = true;
  for (const auto outcome : {Outcome::failed, Outcome::overran}) {
    const auto run = run_of(options, 63s, outcome);
    EXPECT_EQ(refusal(run, 70s, options), Reason::was_run);
    EXPECT_EQ(refusal(run, 70s, retry), Reason::none);
    EXPECT_EQ(refusal(run, 67s, retry), Reason::too_early) << "at_least_for still applies";
  }
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::succeeded), 70s, retry), Reason::was_run);
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::running), 70s, retry), Reason::running);
}

TEST(ScheduleRules, AgainRunsATickThatWasRunAndHasNoTick) {
  const auto options = minutely();
  auto again = options;
  again.again = true;
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::succeeded), 64s, again), Reason::none);
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::running), 64s, again), Reason::running);
  EXPECT_FALSE(begun(again, 64s, {}).tick);
}

TEST(ScheduleRules, OneRunPerTick) {
  const auto options = minutely();
  const auto run = run_of(options, 63s, Outcome::succeeded);
  EXPECT_EQ(refusal({}, 63s, options), Reason::none);
  EXPECT_EQ(refusal(run, 64s, options), Reason::was_run);
  EXPECT_EQ(refusal(run, 113'999ms, options), Reason::was_run);
  EXPECT_EQ(refusal(run, 114s, options), Reason::none);
  EXPECT_EQ(run.next_possible(), 114s);
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::failed), 64s, options), Reason::was_run);
  EXPECT_EQ(refusal(run_of(options, 63s, Outcome::overran), 64s, options), Reason::was_run);
  EXPECT_EQ(refusal(run, 3s, options), Reason::was_run) << "the store's clock has gone back";
}

// G30: whether it is free just now is not the question.
TEST(ScheduleRules, G30_WhoWasPausedDoesNotRunTheTickAgain) {
  const auto options = minutely();
  const auto run = run_of(options, 58s, Outcome::succeeded);
  EXPECT_EQ(refusal(run, 63s, options), Reason::was_run) << "the job took 10 ms, the clocks 5 s";
}

// G40: no hour of the year is left out, and none has two runs.
TEST(ScheduleRules, G40_TicksAreInUtc) {
  // The offset is the earlier of the two times in UTC.
  ScheduleOptions daily{.at_most_for = 1h, .every = 24h, .offset = 30min};
  // 2026-03-29, when clocks in Berlin go from 02:00 to 03:00, and 2026-10-25, when they go back.
  for (const auto midnight : {1'774'742'400s, 1'792'886'400s}) {
    std::optional<RunRecord> last;
    int runs = 0;
    // Cron at 02:30 local time on three days: 01:30 UTC before, 00:30 UTC after the change.
    for (const auto at : {midnight - 24h + 1h + 30min, midnight + 1h, midnight + 24h + 30min}) {
      for (const auto apart : {0ms, 3000ms, 3'600'000ms}) {
        if (refusal(last, at + apart, daily) != Reason::none) continue;
        last = run_of(daily, at + apart, Outcome::succeeded);
        ++runs;
      }
    }
    EXPECT_EQ(runs, 3);
  }
  ScheduleOptions hourly{.at_most_for = 1min, .every = 1h};
  EXPECT_EQ(tick_of(1'774'742'400s + 48h, hourly) - tick_of(1'774'742'400s, hourly), 48);
  EXPECT_THAT(refused(hourly), IsEmpty());
}

TEST(ScheduleRules, ARunThatHasDiedIsFollowedAfterItsOwnAtMostFor) {
  const auto options = minutely();
  for (const auto outcome : {Outcome::running, Outcome::lost}) {
    const auto run = run_of(options, 60s, outcome);
    EXPECT_EQ(refusal(run, 60s + 10min - 1ms, options), Reason::running);
    EXPECT_EQ(refusal(run, 60s + 10min, options), Reason::none);
    EXPECT_EQ(run.next_possible(), 60s + 10min);
  }
}

// G51: who comes with a shorter time of his own does not take a run over before its time.
TEST(ScheduleRules, G51_TheRunsOwnTimeCounts) {
  const auto run = run_of(minutely(), 60s, Outcome::running);
  ScheduleOptions shorter{.at_most_for = 5s, .every = 1min};
  EXPECT_EQ(refusal(run, 70s, shorter), Reason::running);
  EXPECT_EQ(refusal(run, 60s + 10min, shorter), Reason::none);
}

TEST(ScheduleRules, WithoutTicksAtLeastForKeepsRunsApart) {
  const ScheduleOptions options{.at_most_for = 10min, .at_least_for = 30s};
  const auto run = run_of(options, 100s, Outcome::succeeded);
  EXPECT_FALSE(run.tick);
  EXPECT_EQ(refusal(run, 129'999ms, options), Reason::too_early);
  EXPECT_EQ(refusal(run, 130s, options), Reason::none);
  EXPECT_EQ(run.next_possible(), 130s);
}

TEST(ScheduleRules, AtLeastForHoldsAcrossATick) {
  const auto options = minutely();
  const auto run = run_of(options, 113s, Outcome::succeeded);
  EXPECT_EQ(refusal(run, 115s, options), Reason::too_early);
  EXPECT_EQ(run.next_possible(), 118s);
}

TEST(ScheduleRules, AnotherPeriodHasOtherTicks) {
  const auto run = run_of(minutely(), 1h, Outcome::succeeded);
  const ScheduleOptions daily{.at_most_for = 10min, .every = 24h};
  EXPECT_EQ(refusal(run, 1h + 10s, daily), Reason::none);
}

}  // namespace
}  // namespace dlock::core
