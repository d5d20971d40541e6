// SPDX-License-Identifier: Apache-2.0
//
// The three times of a leader: unsafe ratios are refused, with what to write instead.
#include "core/leader/times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LeaderTimes, SafeOnesPass) {
  EXPECT_THAT(refused(LeaderTimes{}), IsEmpty());
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s}), IsEmpty());
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s, .renew_deadline = 10s, .retry = 2s}), IsEmpty());
  EXPECT_THAT(refused(LeaderTimes{.lease = 10s, .renew_deadline = 9s, .retry = 7499ms}), IsEmpty());
  EXPECT_THAT(refused(LeaderTimes{.retry = 1h}), IsEmpty());
}

TEST(LeaderTimes, UnsafeOnesSayWhatToWrite) {
  EXPECT_THAT(refused(LeaderTimes{.lease = 0ms}), HasSubstr("1ms or more"));
  EXPECT_THAT(refused(LeaderTimes{.renew_deadline = 10s}), HasSubstr("give the lease"));
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s, .renew_deadline = 15s}),
              HasSubstr("write 13s500ms or less"));
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s, .renew_deadline = 5s}),
              HasSubstr("write more than 5s"));
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s, .renew_deadline = 10s, .retry = 9s}),
              HasSubstr("write less than 8s333ms"));
  EXPECT_THAT(refused(LeaderTimes{.lease = 15s, .retry = 10s}), HasSubstr("retry 10s"));
}

TEST(LeaderTimes, ATenthOfTheLeaseIsLeftToStop) {
  EXPECT_EQ(time_to_stop({}, 9s), 3s) << "two thirds of it by default";
  EXPECT_EQ(time_to_stop({.lease = 10s, .renew_deadline = 6s}, 10s), 4s);
  EXPECT_EQ(time_to_stop({.lease = 10s, .renew_deadline = 9s}, 5s), 500ms)
      << "the store gives less";
}

TEST(LeaderTimes, ThePauseIsUpToAHalfLonger) {
  EXPECT_EQ(pause_before({}, std::nullopt, 0), 2s);
  EXPECT_EQ(pause_before({.lease = 8s}, std::nullopt, 0), 1s);
  EXPECT_EQ(pause_before({}, Duration(4s), 0), 500ms);
  EXPECT_EQ(pause_before({.retry = 1s}, std::nullopt, 500), 1250ms);
  EXPECT_LT(pause_before({.retry = 1s}, std::nullopt, 999), 1500ms);
}

TEST(LeaderTimes, OnlyWhatMayPassIsTriedAgain) {
  for (const auto error : {errc::unavailable, errc::timed_out, errc::lock_lost}) {
    EXPECT_TRUE(may_pass(make_error_code(error)));
  }
  for (const auto error : {errc::closed, errc::cancelled, errc::invalid_argument,
                           errc::config_unsafe, errc::access_denied, errc::not_supported}) {
    EXPECT_FALSE(may_pass(make_error_code(error)));
  }
}

}  // namespace
}  // namespace dlock::core
