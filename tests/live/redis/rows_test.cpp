// SPDX-License-Identifier: Apache-2.0
//
// More failures that users met, on real servers: logs cut short, set-ups that are not served, late
// grants, the largest tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testkit/ports.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class RedisLog : public RedisTest {
 protected:
  RedisLog() : RedisTest({"--appendonly", "yes", "--appendfsync", "always"}) {}

  fs::path log() const {
    for (const auto& entry : fs::directory_iterator(server_.folder() / "appendonlydir")) {
      if (entry.path().string().ends_with(".incr.aof")) return entry.path();
    }
    throw std::runtime_error("no append-only file");
  }
};

// A killed server loses nothing, whatever it syncs; a power cut takes the end of the log.
TEST_F(RedisLog, F23_ACutLogIsToldAsALossAndAKilledServerIsNone) {
  auto locks = open("&lease=20s");
  auto early = locks.lock("early")->acquire();
  const auto length = fs::file_size(log());
  auto late = locks.lock("late")->acquire();
  StateLog told_early;
  told_early.record(early);
  StateLog told_late;
  told_late.record(late);
  server_.kill9();
  server_.start();
  ASSERT_TRUE(told_late.wait_for(HandleState::held));
  EXPECT_EQ(told_late.count(HandleState::lost), 0U);

  server_.kill9();
  fs::resize_file(log(), length);
  server_.start();
  ASSERT_TRUE(told_late.wait_for(HandleState::lost));
  EXPECT_EQ(late.loss_reason(), LossReason::store_restarted);
  ASSERT_TRUE(eventually(patience(), [&] { return early.state() == HandleState::held; }));
  EXPECT_EQ(told_early.count(HandleState::lost), 0U) << "that one is still in the log";
  EXPECT_TRUE(locks.lock("late")->try_acquire());
}

TEST_F(RedisLog, F23_LessThanASyncEachIsNotSoldAsExclusive) {
  EXPECT_NO_THROW(open("&require=exclusive").connect());
  client().ask({"CONFIG", "SET", "appendfsync", "everysec"});
  try {
    open("&require=exclusive").connect();
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_unsafe);
    EXPECT_THAT(error.what(), HasSubstr("appendfsync always"));
  }
}

TEST(RedisSetups, F38_AClusterIsRefusedWithAClearError) {
  const Port bus;  // its own choice, its port and 10000, may be anybody's
  RedisServer server({"--cluster-enabled", "yes", "--cluster-port", std::to_string(bus.number())});
  server.start();
  auto locks = open_redis(redis_url(server.port(), "&connect_timeout=5s"));
  const auto start = Clock::now();
  try {
    (void)locks.lock("x")->acquire({.wait = 20s});
    FAIL() << "granted by a part of a cluster";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::not_supported) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("cluster"));
  }
  EXPECT_LT(Clock::now() - start, 5s) << "at once, not when the wait is over";
}

void expect_not_built(const std::string& url) {
  try {
    open_redis(url);
    FAIL() << url;
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    EXPECT_THAT(error.what(), HasSubstr("not built yet"));
  }
}

TEST(RedisSetups, F41_F42_AQuorumOfMastersIsRefusedAndNoneIsFakedWithOne) {
  expect_not_built("redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/0");
  expect_not_built("redis+cluster://127.0.0.1:1/0");
  expect_not_built("redis+sentinel://127.0.0.1:1/main");
  EXPECT_THROW(open_redis("redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/0"), LockError);
}

class RedisRows : public RedisTest {};

// The server grants, and the news stays on the way until the lease is over and somebody else has
// the lock. With other clients' keys, where the next in line is woken and asks.
TEST_F(RedisRows, F84_AGrantThatArrivesAfterItsLeaseIsNotHandedOut) {
  FaultProxy proxy(server_.port());
  auto waiters =
      open_redis(redis_url(proxy.port(), "&lease=1s&request_timeout=20s&key=%7Bname%7D"));
  auto others = open("&lease=30s&key=%7Bname%7D");
  waiters.connect();
  auto held = others.lock("x")->acquire();
  std::atomic<bool> handed_out = false;
  auto waiting = std::async(std::launch::async, [&] {
    auto late = waiters.lock("x")->acquire({.wait = 60s});
    handed_out = true;
    return late;
  });
  ASSERT_TRUE(eventually(patience(), [&] {
    return client().ask({"ZCARD", "{x}%queue"}).integer == 1 && client().calls("subscribe") == 1;
  }));
  proxy.on_data(
      [its_turn = false](Direction direction, ConnectionId, std::string_view bytes) mutable {
        // The message that it is its turn goes through, the answer to its claim does not.
        const bool message = bytes.find("\r\nmessage\r\n") != std::string_view::npos;
        its_turn = its_turn || message;
        return direction == Direction::to_client && its_turn && !message ? Verdict::hold
                                                                         : Verdict::forward;
      });
  const auto evals = client().calls("evalsha");
  held.release();
  // It has claimed, and its lease has run out in the reply's stead.
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") >= evals + 2; }));
  auto next = others.lock("x")->acquire({.wait = 30s});
  proxy.on_data([](Direction, ConnectionId, std::string_view) { return Verdict::forward; });
  proxy.release_held();
  EXPECT_FALSE(eventually(within(1s), [&] { return handed_out.load(); }));
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_FALSE(next.release());
  auto late = waiting.get();
  EXPECT_EQ(late.state(), HandleState::held);
}

TEST_F(RedisRows, F90_TokensAreExactUpToTheLastOne) {
  auto locks = open();
  const std::uint64_t last = (std::uint64_t{1} << 53) - 1;
  client().ask({"SET", "dlock:{x}%fence", std::to_string(last - 2)});
  for (auto expected = last - 1; expected <= last; ++expected) {
    auto held = locks.lock("x")->acquire();
    EXPECT_EQ(held.token(), expected);
    EXPECT_EQ(client().ask({"GET", "dlock:{x}"}).text.rfind(std::to_string(expected) + ":", 0), 0U);
    EXPECT_FALSE(held.release()) << "byte for byte the value that was written";
  }
  EXPECT_EQ(exists("dlock:{x}"), 0);
}

}  // namespace
}  // namespace dlock::testkit
