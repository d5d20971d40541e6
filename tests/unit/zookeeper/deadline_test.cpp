// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/deadline.hpp"

#include <gtest/gtest.h>

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimeout = 12s;  // T/4 = 3 s, 2T/3 = 8 s, 11T/12 = 11 s
constexpr TimePoint kStart{1000s};
constexpr Duration kDue = 1560ms;  // 13 % of it

TEST(DeadlineRule, ANewSessionIsGoodForTwoThirds) {
  const DeadlineRule rule(kStart, kTimeout);
  EXPECT_EQ(rule.valid_until(), kStart + 8s);
  EXPECT_EQ(rule.renew_at(), kStart + kDue);
}

TEST(DeadlineRule, ReadsDoNotMoveIt) {
  DeadlineRule rule(kStart, kTimeout);
  for (int i = 1; i < 50; ++i) rule.answered(kStart + i * 1s, kStart + i * 1s);
  EXPECT_EQ(rule.valid_until(), kStart + 8s);
  EXPECT_EQ(rule.renew_at(), kStart + kDue);
}

TEST(DeadlineRule, HeartbeatsAQuarterApartMoveItByTwoThirds) {
  DeadlineRule rule(kStart, kTimeout);
  for (int i = 1; i < 50; ++i) {
    rule.committed(kStart + i * 3s, kStart + i * 3s);
    EXPECT_EQ(rule.valid_until(), kStart + i * 3s + 8s);
    EXPECT_EQ(rule.renew_at(), kStart + i * 3s + kDue);
  }
}

TEST(DeadlineRule, AWriteAfterALongSilenceVouchesForLittle) {
  DeadlineRule rule(kStart, kTimeout);
  rule.committed(kStart + 3s, kStart + 3s);
  // 0.6 T later: the leader may not have heard of us since.
  rule.committed(kStart + 3s + 7200ms, kStart + 3s + 7200ms);
  EXPECT_EQ(rule.valid_until(), kStart + 3s + 11s);
}

TEST(DeadlineRule, AnAnswerTooYoungIsNoBase) {
  DeadlineRule rule(kStart, kTimeout);
  rule.answered(kStart + 20s, kStart + 20s);
  rule.committed(kStart + 22s, kStart + 22s);  // the read is 2 s older, not 3
  EXPECT_EQ(rule.valid_until(), kStart + 11s);
  rule.committed(kStart + 23s, kStart + 23s);
  EXPECT_EQ(rule.valid_until(), kStart + 31s);
}

TEST(DeadlineRule, RequestsThatWereHeldBackTogetherAreNoBaseForEachOther) {
  DeadlineRule rule(kStart, kTimeout);
  rule.committed(kStart + 3s, kStart + 3s);
  // Three more, a quarter apart; all answers come at once, when they have reached the server.
  for (int i = 2; i <= 4; ++i) rule.committed(kStart + i * 3s, kStart + 12500ms);
  EXPECT_EQ(rule.valid_until(), kStart + 3s + 11s);
  // A quarter after those answers they count, by when they were sent.
  rule.committed(kStart + 15500ms, kStart + 15500ms);
  EXPECT_EQ(rule.valid_until(), kStart + 12s + 11s);
}

TEST(DeadlineRule, TheLastButOneOfWritesThatAreDueIsABase) {
  DeadlineRule rule(kStart, kTimeout);
  for (int i = 0; i < 50; ++i) {
    const auto sent = rule.renew_at();
    rule.committed(sent, sent + 50ms);
    EXPECT_GE(rule.valid_until(), sent + 7750ms);
  }
}

TEST(DeadlineRule, AWriteThatIsLostLeavesTimeForAnotherOne) {
  DeadlineRule rule(kStart, kTimeout);
  auto sent = kStart;
  for (int i = 0; i < 5; ++i) rule.committed(sent = rule.renew_at(), rule.renew_at());
  const auto lost = rule.renew_at();
  // A leader stops two thirds of the way to the deadline.
  EXPECT_LT(lost + kTimeout / 5, sent + (rule.valid_until() - sent) * 2 / 3);
}

TEST(DeadlineRule, NeverGoesBack) {
  DeadlineRule rule(kStart, kTimeout);
  rule.committed(kStart + 3s, kStart + 3s);
  rule.committed(kStart + 6s, kStart + 6s);
  const auto until = rule.valid_until();
  rule.committed(kStart + 6001ms, kStart + 6001ms);
  EXPECT_GE(rule.valid_until(), until);
}

TEST(DeadlineRule, ABusySessionLosesLittle) {
  DeadlineRule rule(kStart, kTimeout);
  TimePoint now = kStart;
  for (int i = 0; i < 100'000; ++i, now += 1ms) rule.answered(now, now);
  rule.committed(now, now);
  // Marks are kept every T/64: so much less than 2T/3 at worst.
  EXPECT_LE(rule.valid_until(), now + 8s);
  EXPECT_GE(rule.valid_until(), now + 8s - kTimeout / 64);
}

// Whatever was sent and answered: never more than the rule says, by the marks that were kept.
TEST(DeadlineRule, IsNeverMoreThanTwoThirdsAfterAWriteNorElevenTwelfthsAfterItsBase) {
  std::uint64_t dice = 42;
  const auto roll = [&] {
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>(dice >> 33);
  };
  for (int round = 0; round < 200; ++round) {
    DeadlineRule rule(kStart, kTimeout);
    std::vector<std::pair<TimePoint, TimePoint>> answered = {{kStart, kStart}};
    TimePoint last_answer = kStart;
    TimePoint now = kStart;
    TimePoint allowed = kStart + 8s;
    for (int i = 0; i < 100; ++i) {
      now += std::chrono::milliseconds(roll() % 5000);
      last_answer = std::max(last_answer, now + std::chrono::milliseconds(roll() % 4000));
      if (roll() % 3 == 0) {
        TimePoint base = kStart;
        for (const auto& [sent, received] : answered) {
          if (received <= now - 3s) base = sent;
        }
        allowed = std::max(allowed, std::min<TimePoint>(now + 8s, base + 11s));
        rule.committed(now, last_answer);
      } else {
        rule.answered(now, last_answer);
      }
      answered.emplace_back(now, last_answer);
      ASSERT_LE(rule.valid_until(), allowed);
      ASSERT_GE(rule.valid_until(), allowed - kTimeout / 64);
    }
  }
}

}  // namespace
}  // namespace dlock::zookeeper
