// SPDX-License-Identifier: Apache-2.0
//
// lock_delay: after a loss nobody is granted the lock for that long; after a release at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testkit/process.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

constexpr auto kDelayedLease = 1500ms;
constexpr auto kDelay = 2500ms;
constexpr std::string_view kOptions = "&lease=1500ms&lock_delay=2500ms";

class RedisDelay : public RedisTest {
 protected:
  /// How long the server still keeps the lock.
  std::chrono::milliseconds left(const std::string& key = "dlock:{x}") {
    return std::chrono::milliseconds(client().ask({"PTTL", key}).integer);
  }
};

TEST_F(RedisDelay, AKilledHolderKeepsTheOthersOutForItsLeaseAndTheDelay) {
  ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--store", redis_url(server_.port(), kOptions), "hold", "x"};
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  Process holder(std::move(options));
  ASSERT_TRUE(holder.read_line(patience()));
  // Who waits needs no delay of its own to respect it.
  auto locks = open("&lease=1500ms&poll=100ms");
  auto waiting = acquire_later(locks.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] { return !locks.status("x").waiting.empty(); }));
  holder.kill_and_wait();
  const auto died = Clock::now();
  const auto kept = left();
  EXPECT_GT(kept, kDelay + kDelayedLease / 2) << "renewed each third of the lease";
  auto next = waiting.get();
  const auto after = Clock::now() - died;
  EXPECT_GE(after, kept - 20ms);
  EXPECT_LT(after, kept + 3s);
  EXPECT_FALSE(next.release());
}

TEST_F(RedisDelay, AReleaseFreesItAtOnceWithoutOneRequestMore) {
  auto locks = open(kOptions);
  pass_self_test(locks);
  const auto lock = locks.lock("x");
  const auto before = client().calls("evalsha");
  for (int i = 0; i < 3; ++i) {
    auto held = lock->try_acquire();
    ASSERT_TRUE(held) << i;
    EXPECT_FALSE(held->release());
    EXPECT_EQ(exists("dlock:{x}"), 0);
  }
  // One to give it back, one to take it, unless it has a token for that already.
  EXPECT_LE(client().calls("evalsha") - before, 6);
  auto held = lock->acquire();
  held = LockHandle();
  EXPECT_TRUE(lock->try_acquire({.wait = 1s})) << "a dropped handle is a release, too";
}

TEST_F(RedisDelay, RenewalKeepsTheDelayAndTheHolderBelievesTheLeaseOnly) {
  auto locks = open(kOptions);
  auto held = locks.lock("x")->acquire();
  const auto end = Clock::now() + 3 * kDelayedLease;
  while (Clock::now() < end) {
    ASSERT_LE(held.remaining(), kDelayedLease);
    ASSERT_EQ(held.state(), HandleState::held);
    ASSERT_GT(left(), kDelay);
    ASSERT_LE(left(), kDelay + kDelayedLease);
    const auto status = locks.status("x");
    ASSERT_LE(status.remaining, kDelayedLease);
    ASSERT_GT(status.remaining, 0ms);
    ASSERT_EQ(locks.check(*held.sequencer()).standing, Standing::current);
  }
}

// The holder is alive, and was cut off: it does not free the lock when it is back, for what it has
// under way may be late.
TEST_F(RedisDelay, ALostLockStaysTakenAlthoughItsHolderIsBack) {
  FaultProxy proxy(server_.port());
  auto cut_off = open_redis(redis_url(proxy.port(), kOptions));
  auto others = open("&lease=1500ms&lock_delay=2500ms&poll=100ms");
  auto held = cut_off.lock("x")->acquire();
  const auto sequencer = *held.sequencer();
  StateLog log;
  log.record(held);
  proxy.hold(Direction::to_server, true);
  ASSERT_TRUE(log.wait_for(HandleState::lost));
  const auto lost = Clock::now();
  proxy.hold(Direction::to_server, false);
  ASSERT_TRUE(eventually(patience(), [&] { return left() <= kDelay; }));
  ASSERT_GT(left(), 0ms);
  const auto status = others.status("x");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.remaining, 0ms);
  EXPECT_THAT(status.notes, testing::ElementsAre(testing::HasSubstr("lock_delay")));
  EXPECT_EQ(others.check(sequencer).standing, Standing::not_held);
  EXPECT_FALSE(others.lock("x")->try_acquire());
  auto next = others.lock("x")->acquire({.wait = 30s});
  EXPECT_GE(Clock::now() - lost, kDelay - 200ms);
  EXPECT_GT(next.token(), sequencer.token());
  EXPECT_EQ(others.check(sequencer).standing, Standing::superseded);
}

TEST_F(RedisDelay, WhatANeverHeardGrantLeftIsFreedAtOnce) {
  FaultProxy proxy(server_.port());
  auto deaf = open_redis(redis_url(proxy.port(), kOptions));
  pass_self_test(deaf);
  proxy.hold(Direction::to_client, true);
  error_code ec;
  (void)deaf.lock("x")->acquire({.wait = 200ms}, {}, ec);
  EXPECT_TRUE(ec);
  ASSERT_TRUE(eventually(patience(), [&] { return exists("dlock:{x}") == 1; }));
  proxy.hold(Direction::to_client, false);
  const auto now = Clock::now();
  auto locks = open();
  EXPECT_TRUE(locks.lock("x")->try_acquire({.wait = 30s}));
  EXPECT_LT(Clock::now() - now, kDelayedLease + kDelay - 500ms);
}

TEST_F(RedisDelay, IsShownByDoctor) {
  auto locks = open(kOptions);
  const auto reports = locks.inspect();
  ASSERT_TRUE(reports.at(0).capabilities);
  EXPECT_THAT(reports[0].capabilities->notes,
              testing::Contains(testing::HasSubstr("lock_delay 2500 ms")));
}

}  // namespace
}  // namespace dlock::testkit
