// SPDX-License-Identifier: Apache-2.0
//
// Tokens that came with the grant before, on a real server: they rise, whoever and whatever comes
// between.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

class RedisTokens : public RedisTest {};

TEST_F(RedisTokens, WhoIsAloneNeedsNoScriptToTakeTheLock) {
  auto locks = open("");
  const auto lock = locks.lock("x");
  std::uint64_t last = 0;
  const auto is_taken_without = [&] {
    const auto before = client().calls("evalsha");
    auto held = lock->acquire();
    EXPECT_GT(held.token().value_or(0), last);
    last = held.token().value_or(0);
    EXPECT_FALSE(held.release());
    return client().calls("evalsha") - before == 1;
  };
  EXPECT_TRUE(eventually(patience(), is_taken_without));
}

TEST_F(RedisTokens, AServerWithAReplicaGrantsEachTokenByAScript) {
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(server_.port())});
  replica.start();
  ASSERT_TRUE(eventually(patience(),
                         [&] { return client().info("replication", "connected_slaves") == "1"; }));
  auto locks = open("");
  const auto lock = locks.lock("x");
  constexpr int kRounds = 20;
  const auto before = client().calls("evalsha");
  for (int i = 0; i < kRounds; ++i) ASSERT_FALSE(lock->acquire().release());
  EXPECT_GE(client().calls("evalsha") - before, 2 * kRounds) << "an acquire and a release each";
}

TEST_F(RedisTokens, RiseWhoeverTakesTheLockAndThoughTheFenceIsLost) {
  auto first = open("");
  auto second = open("");
  const std::array locks{first.lock("x"), second.lock("x")};
  std::minstd_rand random(1);
  std::uint64_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    auto held = locks.at(random() % 8 == 0 ? 1 : 0)->acquire();
    const auto token = held.token().value_or(0);
    ASSERT_GT(token, last) << i;
    ASSERT_EQ(client().ask({"GET", "dlock:{x}"}).text.rfind(std::to_string(token) + ":", 0), 0U);
    last = token;
    if (random() % 32 == 0) client().ask({"DEL", "dlock:{x}%fence"});
    ASSERT_FALSE(held.release());
  }
}

}  // namespace
}  // namespace dlock::testkit
