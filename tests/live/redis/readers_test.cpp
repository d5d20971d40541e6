// SPDX-License-Identifier: Apache-2.0
//
// Readers in the lock's own key: what programs see that know nothing of readers, whose record ends
// when, and how long a writer waits.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

constexpr AcquireOptions kRead{.wait = 60s, .mode = Mode::shared};
constexpr AcquireOptions kReadAtOnce{.wait = 0ms, .mode = Mode::shared};
constexpr auto kReadKey = "dlock:{x}";
constexpr auto kDeadReader = "00000000-0000-4000-8000-000000000000,host,1,app";

class RedisReaders : public RedisTest {
 protected:
  std::string text() { return client().ask({"GET", kReadKey}).text; }
  std::int64_t now_ms() {
    const auto time = client().ask({"TIME"});
    return std::stoll(time.items.at(0).text) * 1000 + std::stoll(time.items.at(1).text) / 1000;
  }
  void put(const std::string& value, std::int64_t lease_ms) {
    client().ask({"SET", kReadKey, value, "PX", std::to_string(lease_ms)});
  }
  std::string line(std::int64_t till) {
    return std::to_string(till) + " 17 1700000000000 " + kDeadReader + "\n";
  }
  bool waiters_are(LockManager& locks, std::size_t count) {
    return eventually(patience(), [&] { return locks.status("x").waiting.size() == count; });
  }
};

TEST_F(RedisReaders, ToOtherProgramsTheyAreSomebodyElsesLock) {
  auto locks = open("&lease=20s");
  auto one = locks.lock("x")->acquire(kRead);
  auto two = locks.lock("x")->acquire(kRead);
  const auto there = text();
  EXPECT_EQ(client().ask({"SET", kReadKey, "mine", "NX", "PX", "1000"}).kind,
            redis::Reply::Kind::nil);
  EXPECT_EQ(text(), there);
  EXPECT_GT(client().ask({"PTTL", kReadKey}).integer, 15'000);
  EXPECT_FALSE(one.release());
  EXPECT_EQ(client().ask({"SET", kReadKey, "mine", "NX"}).kind, redis::Reply::Kind::nil);
  EXPECT_FALSE(two.release());
  EXPECT_EQ(exists(kReadKey), 0);
}

TEST_F(RedisReaders, AnotherProgramsLockKeepsThemOutAndIsLeftAlone) {
  auto locks = open();
  client().ask({"SET", kReadKey, "mine"});
  EXPECT_FALSE(locks.lock("x")->try_acquire(kReadAtOnce));
  EXPECT_FALSE(locks.lock("x")->try_acquire({.wait = 50ms, .mode = Mode::shared}));
  EXPECT_EQ(text(), "mine");
  client().ask({"DEL", kReadKey});
  client().ask({"LPUSH", kReadKey, "mine"});
  error_code ec;
  EXPECT_FALSE(locks.lock("x")->acquire(kRead, {}, ec));
  EXPECT_EQ(ec, errc::protocol) << ec.message();
  EXPECT_EQ(client().ask({"LLEN", kReadKey}).integer, 1);
}

// What a writer's scripts do with it, which are those of versions without readers.
TEST_F(RedisReaders, AWritersRequestsTakeTheirTextForAnothersLock) {
  auto locks = open("&lease=600ms");
  auto held = locks.lock("x")->acquire();
  const auto readers = "dlock:readers v=1\n" + line(now_ms() + 60'000);
  put(readers, 60'000);
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::taken);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(locks.lock("x")->try_acquire());
  try {
    locks.evict("x", 4711, {.at_once = true});
    ADD_FAILURE() << "broken with another token";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::not_holder) << error.what();
  }
  EXPECT_EQ(text(), readers);
  locks.evict("x", 17, {.at_once = true});
  EXPECT_EQ(exists(kReadKey), 0) << "the last of them";
}

TEST_F(RedisReaders, ADeadReadersRecordEndsWithItsOwnLease) {
  auto locks = open("&lease=20s");
  put("dlock:readers v=1\n" + line(now_ms() + 3000), 3000);
  auto held = locks.lock("x")->acquire(kRead);
  EXPECT_EQ(locks.status("x").readers.size(), 2U);
  EXPECT_TRUE(eventually(patience(), [&] { return locks.status("x").readers.size() == 1; }));
  auto other = locks.lock("x")->acquire(kRead);
  EXPECT_EQ(text().find(kDeadReader), std::string::npos) << "swept: " << text();
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(other.release());

  put("dlock:readers v=1\n" + line(now_ms() + 1500), 60'000);
  auto third = locks.lock("x")->acquire(kRead);
  EXPECT_FALSE(third.release());
  EXPECT_LE(client().ask({"PTTL", kReadKey}).integer, 1500) << "the dead one's is what is left";
  EXPECT_TRUE(locks.lock("x")->acquire({.wait = 30s}));
}

TEST_F(RedisReaders, G15_EachRenewalIsOfItsOwnRecord) {
  auto locks = open("&lease=900ms");
  auto held = locks.lock("x")->acquire(kRead);
  const auto dead = now_ms() + 4000;
  const auto own = text();
  put(own + line(dead), 5000);
  // Renewed several times beside the other, whose record stays as it was and ends.
  EXPECT_TRUE(eventually(patience(), [&] { return text() != own + line(dead); }));
  EXPECT_NE(text().find(line(dead)), std::string::npos) << text();
  EXPECT_TRUE(eventually(patience(), [&] { return now_ms() > dead + 900; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(locks.status("x").readers.size(), 1U);
  // Gone from among others it is not made anew.
  put("dlock:readers v=1\n" + line(now_ms() + 60'000), 60'000);
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::removed);
  EXPECT_EQ(locks.status("x").readers.size(), 1U);
}

TEST_F(RedisReaders, TwoThatAreBrokenAreBothToldSo) {
  auto locks = open("&lease=1s");
  auto one = locks.lock("x")->acquire(kRead);
  auto two = locks.lock("x")->acquire(kRead);
  auto three = locks.lock("x")->acquire(kRead);
  locks.evict("x", one.token().value(), {.at_once = true});
  locks.evict("x", two.token().value(), {.at_once = true});
  for (auto* handle : {&one, &two}) {
    EXPECT_TRUE(eventually(patience(), [&] { return handle->state() == HandleState::lost; }));
    EXPECT_EQ(handle->loss_reason(), LossReason::broken);
  }
  EXPECT_EQ(three.state(), HandleState::held);
}

TEST_F(RedisReaders, AWriterThatReportsNoPresenceKeepsLaterReadersOutWhileItPolls) {
  auto locks = open("&poll=200ms");
  auto held = locks.lock("x")->acquire(kRead);
  const std::string waiter = "33333333-0000-4000-8000-000000000000 " + std::string(kDeadReader);
  const auto till = now_ms() + 1500;
  client().ask({"ZADD", "dlock:{x}%queue", "1", waiter});
  const auto alive = "v=1 until=" + std::to_string(till) + " kind=notified";
  client().ask({"HSET", "dlock:{x}%alive", waiter, alive});
  EXPECT_FALSE(locks.lock("x")->try_acquire(kReadAtOnce));
  auto late = locks.lock("x")->acquire(kRead);
  EXPECT_GE(now_ms(), till) << "it came in before";
  EXPECT_LT(now_ms(), till + 10'000);
  EXPECT_TRUE(locks.lock("x")->try_acquire(kReadAtOnce)) << "the dead one is in nobody's way";
}

TEST_F(RedisReaders, G18_AWriterWaitsForTheReadersBeforeItAndNoLonger) {
  constexpr int kBefore = 50;
  constexpr auto kReading = 300ms;
  auto locks = open();
  auto writing = open();
  std::atomic<int> in = 0;
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kBefore; ++i) {
    threads.emplace_back([&] {
      auto held = locks.lock("x")->acquire(kRead);
      ++in;
      go.wait(false);
      std::this_thread::sleep_for(kReading);  // the work
      EXPECT_FALSE(held.release());
    });
  }
  EXPECT_TRUE(eventually(patience(), [&] { return in == kBefore; }));
  std::atomic<bool> written = false;
  auto writer = std::async(std::launch::async, [&] {
    auto held = writing.lock("x")->acquire({.wait = 60s});
    written = true;
    return held;
  });
  EXPECT_TRUE(waiters_are(locks, 1));
  for (int i = 0; i < kBefore; ++i) {
    threads.emplace_back([&] {
      auto held = locks.lock("x")->acquire(kRead);
      EXPECT_TRUE(written) << "it has passed the writer";
      EXPECT_FALSE(held.release());
    });
  }
  EXPECT_TRUE(waiters_are(locks, 1 + kBefore));
  const auto began = Clock::now();
  go = true;
  go.notify_all();
  auto held = writer.get();
  EXPECT_LT(Clock::now() - began, kReading + 5s);
  EXPECT_TRUE(locks.status("x").readers.empty());
  EXPECT_FALSE(held.release());
  for (auto& thread : threads) thread.join();
}

TEST_F(RedisReaders, AReaderIsAskedForTheLockByItsOwnToken) {
  auto locks = open("&lease=20s");
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  auto options = kRead;
  options.revocable = true;
  auto one = locks.lock("x")->acquire(options);
  auto two = locks.lock("x")->acquire(options);
  one.on_revoke([&](const Revocation&) { ++first; });
  two.on_revoke([&](const Revocation&) { ++second; });
  EXPECT_TRUE(eventually(patience(), [&] {
    return client().ask({"KEYS", "*%ask%*"}).items.size() == 2;
  }));
  EXPECT_EQ(locks.ask("x", two.token()).token, two.token());
  EXPECT_TRUE(eventually(patience(), [&] { return second == 1; }));
  EXPECT_EQ(first, 0);
}

}  // namespace
}  // namespace dlock::testkit
