// SPDX-License-Identifier: Apache-2.0
//
// Servers that take no connection, or end each at once: what is told, and how often it is tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "dlock/async.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

/// So many tries may come at once, and one a second after them.
long most_tries(std::chrono::seconds time) { return 8 + time.count() + 1; }

class RedisRefused : public RedisTest {
 protected:
  long stat(const std::string& key) {
    return std::strtol(client().info("stats", key).c_str(), nullptr, 10);
  }
  /// Does it again and again for so long.
  static void keep(std::chrono::seconds time, const std::function<void()>& doing) {
    const auto end = Clock::now() + time;
    eventually(end + 1s, [&] {
      doing();
      return Clock::now() >= end;
    });
  }
  static void wait_for(std::chrono::seconds time) {
    keep(time, [] {});
  }
  /// Waiters of `names` different locks, `each` of each.
  void start(LockManager& locks, int names, int each, std::chrono::seconds wait) {
    for (int i = 0; i < names * each; ++i) {
      locks.lock("x/" + std::to_string(i % names))
          ->async_acquire({.wait = wait}, [this](error_code ec, LockHandle handle) {
            if (!ec) handle.release();
            ++(!ec ? granted_ : ec == errc::timed_out ? timed_out_ : failed_);
          });
    }
  }
  long queued(int names) {
    long all = 0;
    for (int i = 0; i < names; ++i) {
      all += client().ask({"ZCARD", "dlock:{x/" + std::to_string(i) + "}%queue"}).integer;
    }
    return all;
  }
  static std::vector<LockHandle> take_all(LockManager& locks, int names) {
    std::vector<LockHandle> held;
    for (int i = 0; i < names; ++i) {
      held.push_back(locks.lock("x/" + std::to_string(i))->acquire());
    }
    return held;
  }

  std::atomic<int> granted_ = 0;
  std::atomic<int> timed_out_ = 0;
  std::atomic<int> failed_ = 0;
};

TEST_F(RedisRefused, F08_WithoutPlacesForSubscriptionsWaitersPollAndTimeOut) {
  constexpr int kNames = 500;
  auto holder = open();
  auto held = take_all(holder, kNames);
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(server_.port(), "&poll=200ms"), warnings);
  locks.connect();
  client().ask({"CONFIG", "SET", "maxclients", "3"});
  const auto before = stat("rejected_connections");
  start(locks, kNames, 1, 12s);
  ASSERT_TRUE(eventually(patience(), [&] { return queued(kNames) == kNames; }));
  wait_for(5s);
  const auto tries = stat("rejected_connections") - before;
  std::printf("%ld tries in 5 s and more\n", tries);
  EXPECT_GE(tries, 1);
  EXPECT_LE(tries, most_tries(12s));
  // The log is written beside what is logged.
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has("maxclients"); }));
  for (int i = 0; i < kNames / 2; ++i) held[static_cast<std::size_t>(i)].release();
  EXPECT_TRUE(eventually(patience(), [&] { return granted_ + timed_out_ + failed_ == kNames; }));
  EXPECT_EQ(granted_, kNames / 2);
  EXPECT_EQ(timed_out_, kNames / 2);
  EXPECT_EQ(failed_, 0);
  EXPECT_TRUE(eventually(patience(), [&] { return queued(kNames) == 0; }));
}

TEST_F(RedisRefused, P14_AServerWithoutPlacesIsToldAsSuch) {
  client().ask({"CONFIG", "SET", "maxclients", "1"});
  const auto before = stat("rejected_connections");
  auto locks = open("&connect_timeout=3s");
  try {
    locks.connect();
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("maxclients"));
  }
  EXPECT_LE(stat("rejected_connections") - before, most_tries(3s));
  client().ask({"CONFIG", "SET", "maxclients", "100"});
  EXPECT_TRUE(locks.lock("x")->try_acquire({.wait = 10s}));
}

TEST_F(RedisRefused, P14_ADeniedSubscriptionIsLeftAloneForAMinute) {
  client().ask({"ACL", "SETUSER", "app", "on", ">secret", "+@all", "~*", "resetchannels"});
  auto holder = open();
  auto held = take_all(holder, 1);
  auto locks =
      open_redis("redis://app:secret@127.0.0.1:" + std::to_string(server_.port()) + "/0?poll=30s");
  pass_self_test(locks);
  const auto connections = stat("total_connections_received");
  const auto asked = client().calls("evalsha");
  start(locks, 1, 20, 60s);
  ASSERT_TRUE(eventually(patience(), [&] { return queued(1) == 20; }));
  wait_for(3s);
  EXPECT_EQ(stat("total_connections_received") - connections, 1);
  EXPECT_EQ(client().calls("evalsha") - asked, 20) << "nobody asks again for its sake";
}

TEST_F(RedisRefused, P14_ASubscriptionThatEndsAtOnceIsNotMadeAnewWithoutAPause) {
  constexpr int kWaiters = 20;
  auto holder = open();
  auto held = take_all(holder, 1);
  auto locks = open("&poll=30s");
  locks.connect();
  start(locks, 1, kWaiters, 60s);
  ASSERT_TRUE(eventually(patience(), [&] { return queued(1) == kWaiters; }));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") >= 1; }));
  const auto asked = client().calls("evalsha");
  keep(5s, [&] { client().ask({"CLIENT", "KILL", "TYPE", "pubsub"}); });
  std::printf("%ld subscriptions in 5 s\n", client().calls("subscribe"));
  EXPECT_LE(client().calls("subscribe"), most_tries(5s));
  EXPECT_LE(client().calls("evalsha") - asked, 4 * kWaiters) << "only for those that may last";
  // And all is well when it is left alone.
  held.front().release();
  EXPECT_TRUE(eventually(patience(), [&] { return granted_ == kWaiters; }));
}

TEST_F(RedisRefused, P14_AConnectionThatEndsAtOnceIsNotMadeAnewWithoutAPause) {
  auto locks = open();
  auto held = locks.lock("x")->acquire();
  const auto before = stat("total_connections_received");
  keep(5s, [&] { client().ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); });
  const auto tries = stat("total_connections_received") - before;
  std::printf("%ld connections in 5 s\n", tries);
  EXPECT_LE(tries, most_tries(5s));
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::held; }));
  EXPECT_FALSE(held.release());
}

// Another program's data beside the lock.
TEST_F(RedisRefused, AQueueKeyOfAnotherTypeFailsNoRelease) {
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(server_.port()), warnings);
  for (const std::string key : {"%queue", "%alive", "%next"}) {
    auto held = locks.lock("x")->acquire();
    client().ask({"DEL", "dlock:{x}" + key});
    client().ask({"RPUSH", "dlock:{x}" + key, "a"});
    const auto released = held.release();
    EXPECT_FALSE(released) << key << ": " << released.message();
    EXPECT_EQ(exists("dlock:{x}"), 0) << key;
    client().ask({"DEL", "dlock:{x}" + key});
  }
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has("dlock:{x}%queue"); }));
}

TEST_F(RedisRefused, AKeyOfAnotherTypeIsNamed) {
  client().ask({"HSET", "dlock:{x}%queue", "a", "b"});
  client().ask({"HSET", "dlock:{y}", "a", "b"});
  auto locks = open();
  const auto error_of = [&](const std::string& name) {
    error_code ec;
    try {
      (void)locks.lock(name)->acquire({.wait = 5s});
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::protocol) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  auto held = locks.lock("x")->acquire();  // nobody waits: the queue is not looked at
  EXPECT_THAT(error_of("x"), HasSubstr("'dlock:{x}%queue'"));
  EXPECT_FALSE(held.release());
  EXPECT_THAT(error_of("y"), HasSubstr("'dlock:{y}'"));
  // Under a lock that is held: it is lost, and nothing else.
  auto taken = locks.lock("z")->acquire();
  client().ask({"DEL", "dlock:{z}"});
  client().ask({"HSET", "dlock:{z}", "a", "b"});
  EXPECT_EQ(taken.release(), errc::lock_lost);
  EXPECT_EQ(client().ask({"HGET", "dlock:{z}", "a"}).text, "b");
}

}  // namespace
}  // namespace dlock::testkit
