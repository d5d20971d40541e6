// SPDX-License-Identifier: Apache-2.0
//
// What the lock costs on the wire, who is woken when, and what of other programs is left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

class RedisQueue : public RedisTest {
 protected:
  /// So many of ours wait in the lock's queue on the server.
  bool wait_for_waiters(const std::string& name, long count) {
    return eventually(patience(), [&] {
      return client().ask({"ZCARD", "dlock:{" + name + "}%queue"}).integer == count;
    });
  }
};

TEST_F(RedisQueue, UncontendedIsOneRoundTripEachWay) {
  FaultProxy proxy(server_.port());
  auto locks = open_redis(redis_url(proxy.port()));
  auto lock = locks.lock("orders/42");
  pass_self_test(locks);
  const auto before = proxy.stats();
  const auto loaded = client().calls("eval");
  const auto asked = client().calls("evalsha");
  auto held = lock->acquire();
  const auto acquired = proxy.stats();
  EXPECT_EQ(acquired.turns - before.turns, 1U);
  EXPECT_EQ(client().calls("evalsha") - asked, 1);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(proxy.stats().turns - acquired.turns, 1U);
  EXPECT_EQ(client().calls("evalsha") - asked, 2);
  EXPECT_EQ(client().calls("eval"), loaded);
}

TEST_F(RedisQueue, TokensRiseThroughReleaseLossOfTheFenceAndTheFloor) {
  auto locks = open();
  auto lock = locks.lock("t");
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    auto held = lock->acquire();
    ASSERT_TRUE(held.token());
    EXPECT_GT(*held.token(), last);
    EXPECT_LT(*held.token(), 1ULL << 53U);
    last = *held.token();
    held.release();
    if (i % 3 == 0) client().ask({"DEL", "dlock:{t}%fence"});
  }
}

TEST_F(RedisQueue, AStepBackOfTheClockDoesNotLowerTokens) {
  auto locks = open();
  client().ask({"SET", "dlock:{t}%fence", "8000000000000000"});
  auto held = locks.lock("t")->acquire();
  EXPECT_EQ(held.token(), 8000000000000001U);
}

TEST_F(RedisQueue, StatusListAndBreak) {
  auto locks = open("&app=till");
  auto held = locks.lock("orders/42")->acquire();
  auto other = locks.lock("orders")->acquire();
  auto elsewhere = locks.lock("ordersx")->acquire();
  auto waiting = acquire_later(locks.lock("orders/42"));
  ASSERT_TRUE(wait_for_waiters("orders/42", 1));
  const auto status = locks.status("orders/42");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, held.token());
  ASSERT_TRUE(status.owner);
  EXPECT_EQ(status.owner->pid, ::getpid());
  EXPECT_EQ(status.owner->app, "till");
  ASSERT_EQ(status.waiting.size(), 1U);
  EXPECT_EQ(status.waiting[0].app, "till");
  ASSERT_TRUE(status.remaining);
  EXPECT_LE(*status.remaining, 30s);
  EXPECT_EQ(locks.list("orders").size(), 2U);
  EXPECT_EQ(locks.list().size(), 3U);
  EXPECT_FALSE(locks.status("nobody").held);

  error_code wrong;
  try {
    locks.evict("orders/42", *held.token() + 1, {.at_once = true});
  } catch (const LockError& error) {
    wrong = error.code();
  }
  EXPECT_EQ(wrong, errc::not_holder);
  locks.evict("orders/42", *held.token(), {.at_once = true});
  auto next = waiting.get();  // woken by the break
  EXPECT_GT(*next.token(), *held.token());
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(locks.status("orders/42").held);
}

TEST_F(RedisQueue, F51_OneReleaseWakesOneOfAHundredWaiters) {
  constexpr int kWaiters = 100;
  auto holder = open();
  auto waiters = open("&poll=30s");
  // Who has been woken once has the subscription: no waiter looks again because it begins to stand.
  auto first_of_all = holder.lock("warm")->acquire();
  auto warm = acquire_later(waiters.lock("warm"));
  ASSERT_TRUE(wait_for_waiters("warm", 1));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") == 1; }));
  first_of_all.release();
  warm.get().release();
  auto held = holder.lock("busy")->acquire();
  ManyWaiters many(waiters.lock("busy"), kWaiters);
  ASSERT_TRUE(wait_for_waiters("busy", kWaiters));
  const auto before = client().calls("evalsha");
  const auto publishes = client().calls("publish");
  held.release();
  auto first = many.take();
  EXPECT_EQ(client().calls("publish") - publishes, 1);
  // The release; a word of presence may come in, a few in all.
  constexpr int kWords = 10;
  EXPECT_LE(client().calls("evalsha") - before, 2);
  first.release();
  std::uint64_t last = 0;
  for (int i = 1; i < kWaiters; ++i) {
    auto next = many.take();
    EXPECT_GT(*next.token(), last);
    last = *next.token();
    next.release();
  }
  EXPECT_EQ(client().calls("publish") - publishes, kWaiters);
  EXPECT_LE(client().calls("evalsha") - before, kWaiters + 1 + kWords);
}

TEST_F(RedisQueue, SixteenContendersNeedAtMostFourCommandsAnAcquire) {
  constexpr int kClients = 16;
  constexpr int kRounds = 100;
  std::vector<std::unique_ptr<LockManager>> managers;
  for (int i = 0; i < kClients; ++i) {
    managers.push_back(std::make_unique<LockManager>(open()));
    managers.back()->connect();
  }
  const auto before = client().calls("evalsha");
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  std::atomic<std::uint64_t> last_token = 0;
  std::atomic<int> out_of_order = 0;
  std::vector<std::thread> threads;
  threads.reserve(managers.size());
  for (auto& manager : managers) {
    threads.emplace_back([&, lock = manager->lock("hot")] {
      for (int i = 0; i < kRounds; ++i) {
        auto held = lock->acquire({.wait = 60s});
        if (++inside != 1) ++overlaps;
        if (last_token.exchange(*held.token()) >= *held.token()) ++out_of_order;
        --inside;
        held.release();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(out_of_order, 0);
  const auto commands = static_cast<double>(client().calls("evalsha") - before);
  RecordProperty("commands_per_acquire", std::to_string(commands / (kClients * kRounds)));
  std::printf("commands per acquire: %.2f\n", commands / (kClients * kRounds));
  EXPECT_LE(commands / (kClients * kRounds), 4.0);
}

TEST_F(RedisQueue, F50_DeadWaitersAreSkippedAtOnce) {
  auto holder = open();
  auto held = holder.lock("q")->acquire();
  // Waiters whose processes have gone: their places stay, nobody listens.
  for (int i = 0; i < 5; ++i) {
    const auto id = "0000000" + std::to_string(i) + "-89ab-cdef-0123-456789abcdef";
    auto waiter = id;
    waiter.append(" ").append(id).append(",h,1,a");
    client().ask({"ZADD", "dlock:{q}%queue", std::to_string(i), waiter});
    client().ask({"HSET", "dlock:{q}%alive", waiter, "v=1 until=9000000000000 kind=notified"});
  }
  auto live = open("&poll=30s");
  auto waiting = acquire_later(live.lock("q"));
  ASSERT_TRUE(wait_for_waiters("q", 6));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") == 1; }));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") >= 2 + 1 + 2; }));
  const auto start = Clock::now();
  held.release();
  waiting.get().release();
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_EQ(client().ask({"EXISTS", "dlock:{q}", "dlock:{q}%queue", "dlock:{q}%alive"}).integer, 0);
}

TEST_F(RedisQueue, WaitersThatGiveUpLeaveNothing) {
  auto holder = open();
  auto held = holder.lock("q")->acquire();
  auto waiters = open();
  auto lock = waiters.lock("q");
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(lock->try_acquire());
    error_code maybe_too_short_for_an_answer;
    EXPECT_FALSE(lock->try_acquire({.wait = 2ms}, {}, maybe_too_short_for_an_answer));
  }
  EXPECT_TRUE(eventually(patience(), [&] {
    return client()
               .ask({"EXISTS", "dlock:{q}%queue", "dlock:{q}%alive", "dlock:{q}%next"})
               .integer == 0;
  }));
  held.release();
  EXPECT_EQ(client().ask({"EXISTS", "dlock:{q}"}).integer, 0);
}

TEST_F(RedisQueue, AWokenWaiterThatGivesUpPassesTheNewsOn) {
  auto locks = open("&poll=30s");
  auto lock = locks.lock("q");
  for (int i = 0; i < 30; ++i) {
    auto held = lock->acquire();
    auto impatient = std::async(std::launch::async, [&, i] {
      error_code maybe_too_short_for_an_answer;
      return lock->try_acquire({.wait = std::chrono::milliseconds(i % 6)}, {},
                               maybe_too_short_for_an_answer);
    });
    auto patient = acquire_later(lock);
    ASSERT_TRUE(eventually(patience(), [&] {
      return !locks.status("q").waiting.empty() ||
             patient.wait_for(0s) == std::future_status::ready;
    }));
    held.release();
    if (auto got = impatient.get()) got->release();
    ASSERT_EQ(patient.wait_for(20s), std::future_status::ready) << i;
    patient.get().release();
  }
}

TEST_F(RedisQueue, AnotherProgramsDataIsAClearErrorAndLeftAlone) {
  client().ask({"HSET", "dlock:{r}", "client:1", "1"});
  auto locks = open();
  try {
    (void)locks.lock("r")->acquire({.wait = 10s});
    FAIL();
  } catch (const LockError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another program's data type"));
    EXPECT_THAT(error.server_text(), HasSubstr("WRONGTYPE"));
  }
  EXPECT_THAT(locks.status("r").notes, testing::Contains(HasSubstr("Redisson")));
  EXPECT_EQ(client().ask({"HGET", "dlock:{r}", "client:1"}).text, "1");
}

TEST_F(RedisQueue, NamesNestAndNeverMeet) {
  auto locks = open();
  std::vector<LockHandle> held;
  for (const char* name : {"a", "a/b", "a%fence", "a}%fence", "{a}", "a%", "a b", "a\xC3\xA4"}) {
    auto got = locks.lock(name)->try_acquire();
    ASSERT_TRUE(got) << name;
    held.push_back(std::move(*got));
  }
  EXPECT_EQ(locks.list().size(), held.size());
  EXPECT_EQ(locks.list("a").size(), 2U);
}

// The newcomer says so: the holder looks for itself only when it renews, here after 100 seconds.
TEST_F(RedisQueue, ALockThatStaysGivesWayLongBeforeItsNextRenewal) {
  auto stays = open("&cache=1h&lease=300s");
  stays.lock("s")->acquire().release();
  ASSERT_EQ(client().ask({"EXISTS", "dlock:{s}"}).integer, 1);
  // After the grant, and again when it listens.
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("zcard") >= 2; }));
  auto other = open();
  error_code ec;
  const auto got = other.lock("s")->try_acquire({.wait = 30s}, {}, ec);
  EXPECT_TRUE(got) << ec.message();
}

TEST_F(RedisQueue, HandOverBesideARawPubSubHandOver) {
  constexpr int kRounds = 200;
  auto first = open("&poll=30s");
  auto second = open("&poll=30s");
  auto a = first.lock("h");
  auto b = second.lock("h");
  std::vector<Clock::duration> times;
  auto held = a->acquire();
  for (int i = 0; i < kRounds; ++i) {
    auto waiting = acquire_later(i % 2 == 0 ? b : a);
    ASSERT_TRUE(wait_for_waiters("h", 1));
    const auto start = Clock::now();
    held.release();
    held = waiting.get();
    if (i > 10) times.push_back(Clock::now() - start);
  }
  std::sort(times.begin(), times.end());
  std::vector<Clock::duration> raw;
  RedisClient subscriber(server_.port());
  subscriber.ask({"SUBSCRIBE", "raw"});
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<bool> listens = false;
    auto heard = std::async(std::launch::async, [&] {
      listens = true;
      return subscriber.next(patience());
    });
    ASSERT_TRUE(eventually(patience(), [&] { return listens.load(); }));
    const auto start = Clock::now();
    client().ask({"PUBLISH", "raw", "x"});
    ASSERT_TRUE(heard.get());
    raw.push_back(Clock::now() - start);
  }
  std::sort(raw.begin(), raw.end());
  const auto us = [](Clock::duration d) {
    return static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
  };
  std::printf("hand-over p50 %ld us, raw pub/sub p50 %ld us\n", us(times[times.size() / 2]),
              us(raw[raw.size() / 2]));
  EXPECT_LT(times[times.size() / 2], 100ms);
}

}  // namespace
}  // namespace dlock::testkit
