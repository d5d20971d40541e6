// SPDX-License-Identifier: Apache-2.0
//
// `fair=true`: who comes later waits, whatever becomes of those before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

class RedisFair : public RedisTest {
 protected:
  static constexpr auto kFair = "&fair=true&lease=20s";

  bool wait_for_waiters(long count) {
    return eventually(patience(), [&] {
      return client().ask({"ZCARD", "dlock:{a}%queue"}).integer == count;
    });
  }
  /// Returns the number of subscribed processes. A waiter without a subscription counts as dead.
  std::size_t listeners() {
    return client().ask({"PUBSUB", "CHANNELS", "dlock:wake:*"}).items.size();
  }
  /// A waiter of another process, whose place is before all that come now. It never asks.
  void put_silent_waiter(const std::string& process, const std::string& arrival = "1") {
    const auto waiter = process + " 00000000-0000-4000-8000-000000000001,host,1,app";
    client().ask({"ZADD", "dlock:{a}%queue", arrival, waiter});
    client().ask({"HSET", "dlock:{a}%alive", waiter, "v=1 until=9000000000000 kind=notified"});
  }
};

TEST_F(RedisFair, WhoWaitsIsNotOvertakenThoughNobodyWasWoken) {
  auto locks = open(kFair);
  auto held = locks.lock("a")->acquire();
  std::vector<LockManager> managers;
  std::vector<std::future<LockHandle>> waiting;
  for (long i = 0; i < 3; ++i) {
    managers.push_back(open(kFair));
    waiting.push_back(acquire_later(managers.back().lock("a")));
    ASSERT_TRUE(wait_for_waiters(i + 1));
  }
  client().ask({"DEL", "dlock:{a}"});  // free, and nobody is told
  auto newcomer = open(kFair);
  EXPECT_FALSE(newcomer.lock("a")->try_acquire());
  for (auto& next : waiting) {
    ASSERT_EQ(next.wait_for(10s), std::future_status::ready);
    auto got = next.get();
    EXPECT_TRUE(got);
    EXPECT_FALSE(newcomer.lock("a")->try_acquire());
    EXPECT_FALSE(got.release());
  }
  EXPECT_TRUE(eventually(patience(), [&] { return bool(newcomer.lock("a")->try_acquire()); }));
}

// The moment of the word to the waiter is not that at which the newcomer's request began.
TEST_F(RedisFair, ANewcomerWakesWhoWaitsAndIsNeverServedBefore) {
  const std::string process = "11111111-2222-4333-8444-555555555555";
  RedisClient deaf(server_.port());  // hears all and does nothing: as a stopped process does
  deaf.send({"SUBSCRIBE", "dlock:wake:" + process});
  ASSERT_TRUE(deaf.next(patience()));
  auto locks = open(kFair);
  for (int i = 0; i < 1000; ++i) {
    client().ask({"DEL", "dlock:{a}%next"});
    put_silent_waiter(process);
    ASSERT_FALSE(locks.lock("a")->try_acquire()) << "time " << i;
  }
}

TEST_F(RedisFair, WhoHasAHeadStartPassesThoseWhoCameInThatTime) {
  using std::chrono::system_clock;
  const auto minute_ago = system_clock::now().time_since_epoch() - 1min;
  const auto arrival = std::chrono::duration_cast<std::chrono::microseconds>(minute_ago).count();
  const std::string process = "11111111-2222-4333-8444-555555555555";
  RedisClient deaf(server_.port());  // hears all and does nothing: as a stopped process does
  deaf.send({"SUBSCRIBE", "dlock:wake:" + process});
  ASSERT_TRUE(deaf.next(patience()));
  put_silent_waiter(process, std::to_string(arrival));
  auto locks = open(kFair);
  EXPECT_FALSE(locks.lock("a")->try_acquire());
  client().ask({"DEL", "dlock:{a}%next"});  // it was woken by that
  put_silent_waiter(process, std::to_string(arrival));
  EXPECT_TRUE(locks.lock("a")->acquire({.wait = 10s, .head_start = 1h}));
}

TEST_F(RedisFair, AStoppedWaiterDelaysTheNextByAStatedBound) {
  auto locks = open(kFair);
  auto held = locks.lock("a")->acquire();
  const std::string process = "11111111-2222-4333-8444-555555555555";
  RedisClient deaf(server_.port());  // hears all and does nothing: as a stopped process does
  deaf.send({"SUBSCRIBE", "dlock:wake:" + process});
  ASSERT_TRUE(deaf.next(patience()));
  put_silent_waiter(process);
  auto other = open(kFair);
  auto next = acquire_later(other.lock("a"));
  ASSERT_TRUE(wait_for_waiters(2));
  const auto freed = std::chrono::steady_clock::now();
  EXPECT_FALSE(held.release());
  ASSERT_EQ(next.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(next.get());
  const auto took = std::chrono::steady_clock::now() - freed;
  EXPECT_GE(took, 400ms) << "it had its try";
  EXPECT_LE(took, 3s) << "half a second, and the next one's look, which is due each second";
}

TEST_F(RedisFair, DeadWaitersCostNothing) {
  auto locks = open(kFair);
  auto held = locks.lock("a")->acquire();
  for (const char digit : {'1', '2', '3', '4'}) {
    put_silent_waiter(std::string(8, digit) + "-2222-4333-8444-555555555555");
  }
  auto other = open(kFair);
  const auto listened = listeners();
  auto next = acquire_later(other.lock("a"));
  ASSERT_TRUE(wait_for_waiters(5));
  ASSERT_TRUE(eventually(patience(), [&] { return listeners() > listened; }));
  client().ask({"DEL", "dlock:{a}"});
  auto newcomer = open(kFair);
  EXPECT_FALSE(newcomer.lock("a")->try_acquire());
  EXPECT_EQ(next.wait_for(400ms), std::future_status::ready);
}

TEST_F(RedisFair, IsPromisedAndRefusedWhereItCannotBeKept) {
  auto locks = open("&fair=true&require=fair");
  locks.connect();
  try {
    open("&require=fair").connect();
    ADD_FAILURE() << "without fair=true";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_unsafe);
  }
  try {
    open("&fair=true&key=lock:%7Bname%7D");
    ADD_FAILURE() << "another client's keys";
  } catch (const LockError& error) {
    EXPECT_THAT(error.what(), HasSubstr("do not queue"));
  }
}

}  // namespace
}  // namespace dlock::testkit
