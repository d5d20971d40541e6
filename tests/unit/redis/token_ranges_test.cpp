// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/token_ranges.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

class TokenRangesTest : public testing::Test {
 protected:
  std::optional<TokenRanges::Token> take(std::uint64_t min_token = 0) {
    return ranges_.take(connection_, "x", min_token, now_);
  }
  void put(std::uint64_t token) {
    ranges_.released_alone(connection_, "x", now_);
    EXPECT_TRUE(ranges_.put(connection_, "x", {token, token + kSize}, now_, now_));
  }

  static constexpr std::uint64_t kSize = 1000;

  TokenRanges ranges_;
  TokenRanges::Connection connection_ = std::make_shared<int>(1);
  TimePoint now_{std::chrono::hours(1)};
};

TEST_F(TokenRangesTest, IsWantedByWhoHasGivenTheLockBackAloneLately) {
  EXPECT_FALSE(ranges_.is_wanted(connection_, "x", now_));
  ranges_.released_alone(connection_, "x", now_);
  EXPECT_TRUE(ranges_.is_wanted(connection_, "x", now_));
  EXPECT_FALSE(ranges_.is_wanted(connection_, "y", now_)) << "another lock";
  EXPECT_FALSE(ranges_.is_wanted(connection_, "x", now_ + kRangeLife));
}

TEST_F(TokenRangesTest, GivesEachTokenOnceInOrderToTheLast) {
  put(100);
  for (std::uint64_t i = 1; i <= kSize; ++i) {
    const auto next = take();
    ASSERT_TRUE(next);
    ASSERT_EQ(next->token, 100 + i);
    ASSERT_EQ(next->fence, 100 + kSize);
  }
  EXPECT_FALSE(take());
}

TEST_F(TokenRangesTest, NeverGivesOneThatIsNotAboveWhatTheCallerKnows) {
  put(100);
  EXPECT_FALSE(take(101));
  EXPECT_EQ(take(100)->token, 101U);
}

TEST_F(TokenRangesTest, EndsWithItsLife) {
  put(100);
  now_ += kRangeLife - kAnswerTime - milliseconds(1);
  EXPECT_EQ(take()->until, now_ + kAnswerTime + milliseconds(1));
  now_ += milliseconds(1);
  EXPECT_FALSE(take());
}

TEST_F(TokenRangesTest, IsNotTakenLongAfterTheReleaseBefore) {
  ranges_.released_alone(connection_, "x", now_);
  const auto asked = now_ + kRangeLife - milliseconds(2);
  EXPECT_TRUE(ranges_.put(connection_, "x", {100, 200}, asked, asked + milliseconds(1)));
  EXPECT_FALSE(ranges_.put(connection_, "x", {100, 200}, asked, asked + milliseconds(2)));
  EXPECT_FALSE(ranges_.put(connection_, "y", {100, 200}, now_, now_)) << "of another lock";
}

TEST_F(TokenRangesTest, EndsWithItsConnection) {
  put(100);
  const auto before = std::exchange(connection_, std::make_shared<int>(2));
  EXPECT_FALSE(take());
  EXPECT_FALSE(ranges_.is_wanted(connection_, "x", now_));
  connection_ = before;
  EXPECT_FALSE(take()) << "nor does it come back";
}

TEST_F(TokenRangesTest, RestsWhenOthersWereMet) {
  put(100);
  ranges_.met_others("x", now_);
  EXPECT_FALSE(take());
  ranges_.released_alone(connection_, "x", now_);
  EXPECT_FALSE(ranges_.is_wanted(connection_, "x", now_));
  now_ += kRangeRest;
  ranges_.released_alone(connection_, "x", now_);
  EXPECT_TRUE(ranges_.is_wanted(connection_, "x", now_));
}

TEST_F(TokenRangesTest, KnowsSoManyLocksAndForgetsThoseThatAreNotUsed) {
  const auto name = [](int i) { return "lock" + std::to_string(i); };
  constexpr int kTooMany = 10'000;
  for (int i = 0; i < kTooMany; ++i) ranges_.released_alone(connection_, name(i), now_);
  EXPECT_TRUE(ranges_.is_wanted(connection_, name(0), now_));
  EXPECT_FALSE(ranges_.is_wanted(connection_, name(kTooMany - 1), now_));
  now_ += kRangeLife;
  ranges_.released_alone(connection_, name(kTooMany - 1), now_);
  EXPECT_TRUE(ranges_.is_wanted(connection_, name(kTooMany - 1), now_));
}

}  // namespace
}  // namespace dlock::redis
