// SPDX-License-Identifier: Apache-2.0
//
// A semaphore's one key: what has expired in it, what others write there, and its end.
#include <fmt/format.h>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

constexpr auto kSlowMachine = 700ms;

class RedisPermits : public RedisTest {
 protected:
  long long now_ms() { return std::stoll(client().ask({"TIME"}).items.at(0).text) * 1000; }
  std::string key() {
    const auto found = client().ask({"KEYS", "*%permits"});
    return found.items.size() == 1 ? found.items[0].text : std::string();
  }
  std::string text() { return client().ask({"GET", key()}).text; }
};

TEST_F(RedisPermits, G38_WhatHasExpiredIsSweptAndReleasedByNobody) {
  auto locks = open("&lease=20s");
  const auto slots = locks.semaphore("s", 2);
  // As a holder that died a while ago has left it.
  auto held = slots.acquire();
  EXPECT_FALSE(held.release());
  const auto head = text();
  const std::string dead =
      "h 1700000000000 2 17 1700000000000 "
      "00000000-0000-4000-8000-000000000000,host,1,app\n";
  client().ask({"SET", key(), head + dead});
  EXPECT_EQ(locks.semaphore_status("s").free(), 2U);
  auto both = slots.try_acquire(2);
  ASSERT_TRUE(both);
  EXPECT_EQ(text().find("00000000-0000-4000"), std::string::npos) << text();
  EXPECT_FALSE(both->release());
  EXPECT_EQ(locks.semaphore_status("s").free(), 2U);
  EXPECT_EQ(text().find('\n'), text().size() - 1) << "its limit alone is left: " << text();
}

TEST_F(RedisPermits, G52_WithoutItsKeyItBeginsAnewAndHoldersAreTold) {
  auto locks = open("&lease=1s");
  const auto slots = locks.semaphore("s", 1);
  EXPECT_FALSE(slots.acquire().release());
  client().ask({"DEL", key()});  // free
  auto held = slots.acquire();
  auto waiter = std::async(std::launch::async, [&] { return slots.acquire(1, {.wait = 60s}); });
  ASSERT_TRUE(
      eventually(patience(), [&] { return locks.semaphore_status("s").waiting.size() == 1; }));
  client().ask({"DEL", key()});  // held, and waited for
  EXPECT_TRUE(waiter.get());
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::removed);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(locks.semaphore_status("s").limit, 1U);
}

TEST_F(RedisPermits, G16_WithoutTheServerNobodyHasPermits) {
  auto locks = open("&connect_timeout=2s&lease=1s");
  const auto slots = locks.semaphore("s", 1);
  EXPECT_FALSE(slots.acquire().release());
  server_.kill9();
  try {
    (void)slots.acquire(1, {.wait = 30s});
    FAIL() << "granted by nobody";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::unavailable) << error.what();
  }
}

TEST_F(RedisPermits, G51_AHoldersOwnLeaseCountsAndNotTheCandidates) {
  auto locks = open("&lease=200ms");
  const auto slots = locks.semaphore("s", 1);
  EXPECT_FALSE(slots.acquire().release());
  const auto time = client().ask({"TIME"});
  const auto till = std::stoll(time.items.at(0).text) * 1000 + 4000;
  const auto line = "h " + std::to_string(till) + " 1 17 1700000000000 " +
                    "00000000-0000-4000-8000-000000000000,host,1,app\n";
  client().ask({"SET", key(), text() + line});
  EXPECT_FALSE(slots.try_acquire_for(1s));
  auto next = slots.acquire(1, {.wait = 30s});
  const auto now = client().ask({"TIME"});
  EXPECT_GE(std::stoll(now.items.at(0).text) * 1000 + 1000, till);
}

// Far behind it polled rarely, so it may poll late; as one of the first it may not.
TEST_F(RedisPermits, AWaiterThatMovesUpPollsSoonOrLosesItsPlace) {
  constexpr std::string_view kStopped = "00000000-0000-4000-8000-000000000000";
  auto locks = open();
  const auto slots = locks.semaphore("s", 1);
  EXPECT_FALSE(slots.acquire().release());
  RedisClient stopped(server_.port());
  stopped.send({"SUBSCRIBE", fmt::format("dlock:wake:{}", kStopped)});
  ASSERT_TRUE(stopped.next(patience()));
  const auto line = fmt::format("w {} 1 1600 1700000000000 {},{},host,1,app\n", now_ms() + 60'000,
                                kStopped, kStopped);
  client().ask({"APPEND", key(), line});
  ASSERT_EQ(locks.semaphore_status("s").waiting.size(), 1U);
  const auto began = Clock::now();
  auto held = slots.acquire(1, {.wait = 60s});
  EXPECT_GT(Clock::now() - began, 1s) << "it has had time to poll";
  EXPECT_LT(Clock::now() - began, 2s + kSlowMachine);
}

// As P08: no process is subscribed any more.
TEST_F(RedisPermits, AWaiterThatCannotBeNotifiedLosesItsPlaceAtOnce) {
  constexpr std::string_view kKilled = "00000000-0000-4000-8000-000000000000";
  auto locks = open();
  const auto slots = locks.semaphore("s", 1);
  auto held = slots.acquire();
  const auto line = fmt::format("w {} 1 1600 1700000000000 {},{},host,1,app\n", now_ms() + 60'000,
                                kKilled, kKilled);
  client().ask({"APPEND", key(), line});
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(locks.semaphore_status("s").waiting.empty());
  EXPECT_TRUE(slots.try_acquire());
}

TEST_F(RedisPermits, AnotherProgramsTextOrTypeIsLeftAloneAndToldAsAnError) {
  auto locks = open();
  EXPECT_FALSE(locks.semaphore("s", 1).acquire().release());
  const auto there = key();
  for (const auto& command :
       {redis::Command{"SET", there, "mine"}, redis::Command{"LPUSH", there, "mine"}}) {
    client().ask({"DEL", there});
    client().ask(command);
    try {
      (void)locks.semaphore("s", 1).acquire(1, {.wait = 5s});
      ADD_FAILURE() << "granted over another program's data";
    } catch (const LockError& error) {
      EXPECT_NE(error.code(), errc::timed_out) << error.what();
    }
    EXPECT_THROW((void)locks.semaphore_status("s"), LockError);
    EXPECT_EQ(exists(there), 1);
  }
}

}  // namespace
}  // namespace dlock::testkit
