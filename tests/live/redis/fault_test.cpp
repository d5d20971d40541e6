// SPDX-License-Identifier: Apache-2.0
//
// The failures that users met, on real servers: rows of docs/failures.md, named by their numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>

#include "dlock/async.hpp"
#include "tests/live/redis/support.hpp"
#include "tests/support/acquired.hpp"

namespace dlock::testkit {
namespace {

class RedisFaults : public RedisTest {
 protected:
  using RedisTest::RedisTest;
};

TEST_F(RedisFaults, AKilledConnectionIsMadeAnewAndLocksStay) {
  auto locks = open("&lease=10s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  for (int i = 0; i < 5; ++i) {
    client().ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(eventually(patience(), [&] {
      return log.count(HandleState::held) == static_cast<std::size_t>(i) + 1;
    }));
  }
  EXPECT_EQ(log.count(HandleState::lost), 0U);
  EXPECT_FALSE(held.release());
}

// Lua takes the word for a number that is neither above nor below any other.
TEST_F(RedisFaults, AFenceThatIsNotANumberGrantsNothing) {
  client().ask({"SET", "dlock:{x}%fence", "nan"});
  auto locks = open();
  error_code error;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 10s}, {}, error));
  EXPECT_NE(error, errc::timed_out);
  EXPECT_EQ(exists("dlock:{x}"), 0) << "nothing was taken";
}

TEST_F(RedisFaults, F04_ABusyServerDuringARenewalLosesNothing) {
  auto locks = open("&lease=5s");
  auto held = locks.lock("x")->acquire();
  client().ask({"CONFIG", "SET", "busy-reply-threshold", "50"});
  const auto value = client().ask({"GET", "dlock:{x}"}).text;
  for (int i = 0; i < 2; ++i) {
    // Two ticks of the watchdog, in a third of five seconds each, meet BUSY.
    client().ask({"EVAL",
                  "local t = redis.call('TIME') repeat local n = redis.call('TIME') until (n[1] - "
                  "t[1]) * 1000000 + n[2] - t[2] > 1800000 return 1",
                  "0"});
  }
  const auto end = Clock::now() + 5s;
  EXPECT_TRUE(eventually(patience(), [&] { return Clock::now() > end; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(client().ask({"GET", "dlock:{x}"}).text, value);
}

TEST_F(RedisFaults, F06_ASilentServerIsToldByTheDeadline) {
  auto locks = open("&lease=2s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  const auto latest = BoottimeClock::now() + 2s;
  server_.pause();
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  server_.resume();
  EXPECT_EQ(log.count(HandleState::lost), 1U);
  EXPECT_LE(log.entries().back().when, latest + 500ms);  // renewals had moved the deadline at most
  EXPECT_EQ(held.loss_reason(), LossReason::expired);
  EXPECT_TRUE(locks.lock("x")->try_acquire({.wait = 20s}));
}

TEST_F(RedisFaults, F07_ALostMessageIsCoveredByThePoll) {
  auto holder = open();
  FaultProxy proxy(server_.port());
  auto waiters = open_redis(redis_url(proxy.port(), "&poll=300ms"));
  auto held = holder.lock("x")->acquire();
  proxy.on_data([](Direction direction, ConnectionId, std::string_view bytes) {
    const bool message = direction == Direction::to_client &&
                         bytes.find("\r\nmessage\r\n") != std::string_view::npos;
    return message ? Verdict::swallow : Verdict::forward;
  });
  auto waiting = acquire_later(waiters.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") == 1; }));
  ASSERT_TRUE(eventually(patience(), [&] { return !holder.status("x").waiting.empty(); }));
  held.release();
  EXPECT_EQ(waiting.wait_for(5s), std::future_status::ready);
  waiting.get().release();
}

TEST_F(RedisFaults, F07_AKilledSubscriptionIsMadeAnewAndWaitersLook) {
  auto holder = open();
  auto waiters = open("&poll=30s");
  auto held = holder.lock("x")->acquire();
  auto waiting = acquire_later(waiters.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") == 1; }));
  held.release();
  client().ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready);
}

TEST_F(RedisFaults, F09_WaitersGoOnAfterAServersRestart) {
  constexpr int kWaiters = 50;
  auto locks = open("&lease=2s");
  auto lock = locks.lock("x");
  auto held = lock->acquire();
  std::atomic<int> done = 0;
  std::atomic<int> failed = 0;
  for (int i = 0; i < kWaiters; ++i) {
    lock->async_acquire({.wait = 60s}, [&](error_code ec, LockHandle) {
      if (ec) ++failed;
      ++done;
    });
  }
  ASSERT_TRUE(eventually(patience(), [&] {
    return locks.status("x").waiting.size() == static_cast<std::size_t>(kWaiters);
  }));
  server_.kill9();
  server_.start();
  EXPECT_TRUE(eventually(patience(), [&] { return done == kWaiters; })) << done;
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(held.state(), HandleState::lost);
}

TEST_F(RedisFaults, F22_ARestartWithoutDataIsToldAtOnce) {
  auto locks = open("&lease=30s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  server_.kill9();
  server_.start();
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  EXPECT_EQ(held.loss_reason(), LossReason::store_restarted);
  EXPECT_TRUE(locks.lock("x")->try_acquire());
}

TEST_F(RedisFaults, F31_AFlushIsToldAtTheNextRenewal) {
  auto locks = open("&lease=3s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  client().ask({"FLUSHALL"});
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  EXPECT_EQ(held.loss_reason(), LossReason::removed);
}

TEST_F(RedisFaults, F32_ATakenLockIsToldAtTheNextRenewal) {
  auto locks = open("&lease=3s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  client().ask({"SET", "dlock:{x}", "somebody else"});
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  EXPECT_EQ(held.loss_reason(), LossReason::taken);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(client().ask({"GET", "dlock:{x}"}).text, "somebody else");
}

// Not another lock's value, but another program's data: no script of ours can read it.
TEST_F(RedisFaults, F32_ALockUnderForeignDataIsToldAsTaken) {
  auto locks = open("&lease=3s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  client().ask({"DEL", "dlock:{x}"});
  client().ask({"RPUSH", "dlock:{x}", "somebody else"});
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  EXPECT_EQ(held.loss_reason(), LossReason::taken);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(client().ask({"LLEN", "dlock:{x}"}).integer, 1);
}

TEST_F(RedisFaults, F35_AFlushedScriptCacheIsNotNoticed) {
  auto locks = open("&lease=3s");
  auto held = locks.lock("x")->acquire();
  client().ask({"SCRIPT", "FLUSH"});
  const auto evals = client().calls("eval");
  // The renewal by its text, then by its hash again.
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("eval") == evals + 1; }));
  const auto hashes = client().calls("evalsha");
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") > hashes + 1; }));
  EXPECT_EQ(client().calls("eval"), evals + 1);
  client().ask({"SCRIPT", "FLUSH"});
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(locks.lock("x")->try_acquire());
}

// One address for both servers, as a virtual one would be: a socket's path. The replica was cut off
// before the grant.
TEST(RedisFailover, F03_APromotedReplicaBehindTheAddressIsToldAsFailover) {
  TempDir folder("dlock-redis-failover");
  const auto path = (folder / "first.sock").string();
  RedisServer first({"--unixsocket", path});
  first.start();
  FaultProxy cut(first.port());
  RedisServer second({"--unixsocket", (folder / "second.sock").string(), "--replicaof",
                      "127.0.0.1 " + std::to_string(cut.port())});
  second.start();
  RedisClient replica(second.port());
  ASSERT_TRUE(eventually(
      patience(), [&] { return replica.info("replication", "master_link_status") == "up"; }));
  auto locks = open_redis("redis+unix://" + path);
  EXPECT_EQ(locks.inspect().front().capabilities->guarantee, Guarantee::best_effort);
  cut.refuse(true);
  cut.drop_all();
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  replica.ask({"REPLICAOF", "NO", "ONE"});
  std::filesystem::rename(folder / "second.sock", path);
  first.kill9();
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(20s)));
  EXPECT_EQ(held.loss_reason(), LossReason::failover);
  auto next = locks.lock("x")->acquire({.wait = 20s});
  EXPECT_GT(*next.token(), *held.token());
}

TEST_F(RedisFaults, AReplicaIsRefusedAndItsWordIsNoProofOfLoss) {
  RedisServer other;
  other.start();
  auto locks = open("&lease=2s&connect_timeout=1s");
  auto held = locks.lock("x")->acquire();
  // Demoted under our feet: it will take the other's (empty) data.
  client().ask({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  StateLog log;
  log.record(held);
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(20s)));
  EXPECT_EQ(held.loss_reason(), LossReason::expired);
  error_code ec;
  (void)locks.lock("y")->acquire({.wait = 3s}, {}, ec);
  EXPECT_EQ(ec, errc::unavailable) << ec.message();
}

// All that are due go in one batch; the wire is slow, and no renewal is late by a third of a lease.
TEST_F(RedisFaults, F82_TenThousandLocksAreRenewedInBatchesThroughADelay) {
  constexpr int kLocks = 10'000;
  constexpr auto kLease = 6s;
  FaultProxy proxy(server_.port());
  auto locks = open_redis(redis_url(proxy.port(), "&lease=6s"));
  locks.connect();
  Acquired acquired;
  for (int i = 0; i < kLocks; ++i) {
    locks.lock("many/" + std::to_string(i))->async_acquire({.wait = 30s}, acquired.one());
  }
  ASSERT_TRUE(acquired.all(kLocks));
  ASSERT_EQ(acquired.failed(), 0);
  auto& held = acquired.held();
  proxy.delay(Direction::to_client, 200ms);
  const auto before = proxy.stats();
  auto shortest = std::chrono::nanoseconds(kLease);
  const auto end = Clock::now() + kLease + kLease / 3;
  while (Clock::now() < end) {
    for (auto& handle : held) shortest = std::min(shortest, *handle.remaining());
    std::this_thread::sleep_for(10ms);
  }
  const auto turns = proxy.stats().turns - before.turns;
  // A renewal is due when two thirds of the lease are left; the round trip comes on top.
  const auto worst_lag = kLease * 2 / 3 - shortest;
  std::printf("worst lag %.0f ms of a lease of %.0f s, %llu turns for about %d renewals\n",
              std::chrono::duration<double, std::milli>(worst_lag).count(),
              std::chrono::duration<double>(kLease).count(), static_cast<unsigned long long>(turns),
              4 * kLocks);
  EXPECT_LT(worst_lag, kLease / 3);
  EXPECT_LT(turns, kLocks / 10) << "in batches";
  for (auto& handle : held) EXPECT_EQ(handle.state(), HandleState::held);
}

TEST_F(RedisFaults, F27_ADelayedReplyShortensTheLease) {
  FaultProxy proxy(server_.port());
  auto locks = open_redis(redis_url(proxy.port(), "&lease=1s&request_timeout=2s"));
  pass_self_test(locks);
  proxy.delay(Direction::to_client, 800ms);
  auto held = locks.lock("x")->acquire({.wait = 10s});
  EXPECT_LE(held.remaining().value_or(1h), 200ms);
}

class RedisEviction : public RedisFaults {
 protected:
  RedisEviction() : RedisFaults({"--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"}) {}
};

TEST_F(RedisEviction, F20_IsRefusedOnDemandAndToldAtTheNextRenewal) {
  auto strict = open("&require=exclusive");
  try {
    strict.connect();
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_unsafe);
    EXPECT_THAT(error.what(), testing::HasSubstr("maxmemory-policy noeviction"));
  }
  auto locks = open("&lease=6s");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  const std::string junk(100, 'x');
  for (int i = 0; i < 200 && exists("dlock:{x}") == 1; ++i) {
    for (int k = 0; k < 500; ++k) {
      client().send({"SET", "junk" + std::to_string(i) + "/" + std::to_string(k), junk});
    }
    for (int k = 0; k < 500; ++k) ASSERT_TRUE(client().next(patience()));
  }
  EXPECT_EQ(exists("dlock:{x}"), 0);
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(10s)));
  EXPECT_EQ(held.loss_reason(), LossReason::removed);
}

class RedisFull : public RedisFaults {
 protected:
  RedisFull() : RedisFaults({"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"}) {}
};

TEST_F(RedisFull, AFullServerGrantsNothingButRenewsAndReleases) {
  auto locks = open("&lease=3s&connect_timeout=1s");
  auto held = locks.lock("x")->acquire();
  client().ask({"CONFIG", "SET", "maxmemory", "100kb"});  // less than it uses already
  const auto before = client().calls("evalsha");
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") > before + 1; }));
  EXPECT_EQ(held.state(), HandleState::held);
  error_code ec;
  (void)locks.lock("y")->acquire({.wait = 3s}, {}, ec);
  EXPECT_EQ(ec, errc::unavailable) << ec.message();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(exists("dlock:{x}"), 0);
}

}  // namespace
}  // namespace dlock::testkit
