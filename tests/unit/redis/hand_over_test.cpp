// SPDX-License-Identifier: Apache-2.0
//
// What a message of a release says, and until when a lock that was handed over may be believed.
#include "backends/redis/rules/hand_over.hpp"

#include <gtest/gtest.h>

#include <string>

#include "backends/redis/rules/names.hpp"
#include "backends/redis/scripts/scripts.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

const std::string kWaiter = "01234567-89ab-cdef-0123-456789abcdef";
constexpr TimePoint kStart{std::chrono::hours(1)};

ClaimRequest waiting_request(std::chrono::milliseconds lease = 30s) {
  ClaimRequest request;
  request.name = "x";
  request.lease = lease;
  return request;
}

TEST(RedisHandOver, MessagesThatOnlyWake) {
  for (const std::string rest :
       {"", " ", " 17", " 17 3", " 17 3 ", " 17 3 1000 ", " 17 3 1000 5", " 17  3 1000",
        " -1 3 1000", " 17 3 x", "17 3 1000", " 99999999999999999999 3 1000"}) {
    const auto text = kWaiter + rest;
    const auto message = read_message(text);
    EXPECT_EQ(message.owner_id, kWaiter);
    EXPECT_FALSE(message.grant) << text;
  }
  EXPECT_EQ(read_message("").owner_id, "");
  EXPECT_FALSE(read_message("short 1 2 3").grant);
}

TEST(RedisHandOver, AMessageNamesTokenWordAndProbation) {
  const auto text = kWaiter + " 1795638295536202 7 900";
  const auto message = read_message(text);
  EXPECT_EQ(message.owner_id, kWaiter);
  ASSERT_TRUE(message.grant);
  EXPECT_EQ(message.grant->token, 1795638295536202U);
  EXPECT_EQ(message.grant->word, 7U);
  EXPECT_EQ(message.grant->kept, 900ms);
  const auto long_text = kWaiter + " 1 1 18446744073709551615";
  const auto longer = read_message(long_text);
  ASSERT_TRUE(longer.grant);
  EXPECT_EQ(longer.grant->kept, kProbation) << "no more than ours is believed";
}

TEST(RedisHandOver, BelievedForTheProbationOrTheShorterLease) {
  const WakeMessage::Grant grant{5, 1, 1000ms};
  EXPECT_EQ(handed_lock(grant, kStart, 30s).until, kStart + 1s);
  EXPECT_EQ(handed_lock(grant, kStart, 300ms).until, kStart + 300ms);
}

TEST(RedisHandOver, NotBelievedWithoutTimeToConfirmOrWithATokenTooLow) {
  const HandedLock handed{5, kStart + 1s};
  auto request = waiting_request();
  request.min_token = 4;
  EXPECT_TRUE(is_believable(handed, request, kStart));
  // A hundredth of the lease for the clocks, and 100 ms.
  EXPECT_TRUE(is_believable(handed, request, kStart + 600ms));
  EXPECT_FALSE(is_believable(handed, request, kStart + 601ms));
  EXPECT_FALSE(is_believable(handed, waiting_request(2min), kStart));
  request.min_token = 5;
  EXPECT_FALSE(is_believable(handed, request, kStart));
}

TEST(RedisHandOver, WhoMustBeAskedIsNotHandedALock) {
  auto request = waiting_request();
  EXPECT_TRUE(may_be_handed(request));
  EXPECT_TRUE(may_be_handed(waiting_request(24h)));
  EXPECT_FALSE(may_be_handed(waiting_request(25h))) << "the fence would not outlive its lease";
  request.gate = std::make_shared<const GateCheck>();
  EXPECT_FALSE(may_be_handed(request));
  request.gate.reset();
  request.queue = false;
  EXPECT_FALSE(may_be_handed(request));
}

TEST(RedisHandOver, WordsCountFromBeforeTheyWereSentAndNotForEver) {
  SentWords words;
  EXPECT_FALSE(words.sent(0));
  EXPECT_FALSE(words.sent(1));
  EXPECT_EQ(words.begin(kStart), 1U);
  EXPECT_EQ(words.begin(kStart + 1s), 2U);
  EXPECT_EQ(words.sent(1), kStart);
  EXPECT_EQ(words.sent(2), kStart + 1s);
  EXPECT_FALSE(words.sent(3)) << "not sent yet";
  for (int i = 0; i < 14; ++i) words.begin(kStart + 2s);
  EXPECT_EQ(words.sent(1), kStart);
  words.begin(kStart + 3s);
  EXPECT_FALSE(words.sent(1)) << "too long ago";
  EXPECT_EQ(words.sent(2), kStart + 1s);
  words.forget();
  EXPECT_FALSE(words.sent(2)) << "another server";
  EXPECT_FALSE(words.sent(17));
  EXPECT_EQ(words.begin(kStart + 4s), 18U) << "they rise all the same";
  EXPECT_EQ(words.sent(18), kStart + 4s);
}

TEST(RedisHandOver, TheScriptsKnowTheSameNumbers) {
  const auto& text = scripts().release.text;
  EXPECT_NE(text.find("'" + std::string(kPresencePrefix) + "'"), std::string::npos);
  EXPECT_NE(text.find("'PX', '" + std::to_string(kProbation.count()) + "', how"),
            std::string::npos);
  EXPECT_NE(text.find("' " + std::to_string(kProbation.count()) + "'"), std::string::npos);
  EXPECT_FALSE(KeyMap(kOwnTemplate).name(std::string(kPresencePrefix) + kWaiter));
}

}  // namespace
}  // namespace dlock::redis
