// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/backoff.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
const TimePoint kStart{std::chrono::seconds(100)};
constexpr std::uint64_t kHighest = 1024;  // the jitter's upper end

TEST(Backoff, ExponentialDoublesToItsMaximumAndNeverGivesUp) {
  Backoff backoff({.kind = RetryPolicy::Kind::exponential,
                   .base = milliseconds(100),
                   .max = milliseconds(3000)});
  for (const int expected : {100, 200, 400, 800, 1600, 3000, 3000}) {
    EXPECT_EQ(backoff.next(kStart, kHighest), Duration(milliseconds(expected)));
  }
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(backoff.next(kStart, kHighest));
}

TEST(Backoff, ExponentialJittersOverItsUpperHalf) {
  for (std::uint64_t dice = 0; dice < 5000; dice += 37) {
    Backoff backoff(RetryPolicy{});
    const auto pause = *backoff.next(kStart, dice);
    EXPECT_GE(pause, milliseconds(50));
    EXPECT_LE(pause, milliseconds(100));
  }
}

TEST(Backoff, BoundedExponentialGivesUpAfterItsTimes) {
  Backoff backoff({.kind = RetryPolicy::Kind::bounded_exponential, .times = 2});
  EXPECT_TRUE(backoff.next(kStart, 0));
  EXPECT_TRUE(backoff.next(kStart, 0));
  EXPECT_FALSE(backoff.next(kStart, 0));
}

TEST(Backoff, OneTimeTriesOnceMore) {
  Backoff backoff({.kind = RetryPolicy::Kind::one_time, .base = milliseconds(7)});
  EXPECT_EQ(backoff.next(kStart, 0), Duration(milliseconds(7)));
  EXPECT_FALSE(backoff.next(kStart, 0));
}

TEST(Backoff, NTimesTriesNTimes) {
  Backoff backoff({.kind = RetryPolicy::Kind::n_times, .base = milliseconds(7), .times = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(backoff.next(kStart, 0));
  EXPECT_FALSE(backoff.next(kStart, 0));
}

TEST(Backoff, ForeverKeepsItsPace) {
  Backoff backoff({.kind = RetryPolicy::Kind::forever, .base = milliseconds(7)});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(backoff.next(kStart, 0), Duration(milliseconds(7)));
}

TEST(Backoff, UntilElapsedCountsFromTheFirstFailure) {
  Backoff backoff({.kind = RetryPolicy::Kind::until_elapsed, .elapsed = milliseconds(1000)});
  EXPECT_TRUE(backoff.next(kStart, 0));
  EXPECT_TRUE(backoff.next(kStart + milliseconds(999), 0));
  EXPECT_FALSE(backoff.next(kStart + milliseconds(1000), 0));
}

TEST(Backoff, ASuccessStartsTheCountAnew) {
  Backoff backoff({.kind = RetryPolicy::Kind::one_time});
  EXPECT_TRUE(backoff.next(kStart, 0));
  backoff.reset();
  EXPECT_TRUE(backoff.next(kStart, 0));
}

TEST(Backoff, TheJitterReachesBothEndsOfTheUpperHalf) {
  const RetryPolicy policy{.kind = RetryPolicy::Kind::exponential, .base = milliseconds(100)};
  EXPECT_EQ(Backoff(policy).next(kStart, 0), Duration(milliseconds(50)));
  EXPECT_EQ(Backoff(policy).next(kStart, kHighest), Duration(milliseconds(100)));
}

}  // namespace
}  // namespace dlock::core
