// SPDX-License-Identifier: Apache-2.0
//
// Waiters that do not answer: of processes that are stopped, or killed while a child of theirs
// lives. How long the free lock waits for them is what README.md states.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <memory>

#include "dlock/async.hpp"
#include "testkit/process.hpp"
#include "testkit/wall_clock.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// For a machine that does other things, too.
constexpr Milliseconds kBusyMachine{700};
constexpr Milliseconds kFirstTry{500};

class RedisStopped : public RedisTest {
 protected:
  std::unique_ptr<Process> waiters(int count, const std::string& rest = {}, bool child = false) {
    ProcessOptions options;
    options.argv = {DLOCK_REDIS_WAITERS, redis_url(server_.port(), rest), "x",
                    std::to_string(count)};
    if (child) options.argv.emplace_back("child");
    return std::make_unique<Process>(std::move(options));
  }
  bool so_many_wait(long count) {
    return eventually(patience(), [&] {
      return client().ask({"ZCARD", "dlock:{x}%queue"}).integer == count;
    });
  }
  bool so_many_listen(long count) {
    return eventually(patience(), [&] {
      long found = 0;
      const auto reply = client().ask({"PUBSUB", "CHANNELS", "dlock:wake:*"});
      for (const auto& channel : reply.items) {
        found += client().ask({"PUBSUB", "NUMSUB", channel.text}).items.at(1).integer;
      }
      return found == count;
    });
  }

  /// Hands over `rounds` times among waiters that live; how long each took.
  std::vector<Milliseconds> hand_over(LockHandle held, LockManager& live, int rounds) {
    std::vector<std::future<LockHandle>> next;
    for (int i = 0; i < rounds; ++i) next.push_back(acquire_later(live.lock("x")));
    std::vector<Milliseconds> took;
    EXPECT_TRUE(eventually(
        patience(), [&] { return locks_that_wait(live) >= static_cast<std::size_t>(rounds); }));
    for (int i = 0; i < rounds; ++i) {
      const auto start = Clock::now();
      held.release();
      held = first_of(next);
      took.push_back(std::chrono::duration_cast<Milliseconds>(Clock::now() - start));
    }
    held.release();
    return took;
  }

 private:
  static std::size_t locks_that_wait(LockManager& live) {
    const auto status = live.status("x");
    return static_cast<std::size_t>(
        std::count_if(status.waiting.begin(), status.waiting.end(),
                      [](const Owner& owner) { return owner.pid == ::getpid(); }));
  }
  static LockHandle first_of(std::vector<std::future<LockHandle>>& next) {
    std::size_t ready = next.size();
    EXPECT_TRUE(eventually(patience(), [&] {
      for (ready = 0; ready < next.size(); ++ready) {
        if (next[ready].wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;
      }
      return ready < next.size();
    }));
    if (ready == next.size()) return {};
    auto handle = next[ready].get();
    next.erase(next.begin() + static_cast<std::ptrdiff_t>(ready));
    return handle;
  }
};

Milliseconds longest(const std::vector<Milliseconds>& took) {
  return *std::max_element(took.begin(), took.end());
}

void print(const char* what, const std::vector<Milliseconds>& took) {
  std::printf("%s:", what);
  for (const auto each : took) std::printf(" %lld", static_cast<long long>(each.count()));
  std::printf(" ms\n");
}

TEST_F(RedisStopped, P09_AllWaitersOfAStoppedProcessGoAtOnce) {
  constexpr int kWaiters = 40;
  auto holder = open();
  auto held = holder.lock("x")->acquire();
  const auto stopped = waiters(kWaiters);
  ASSERT_TRUE(so_many_wait(kWaiters));
  ASSERT_TRUE(so_many_listen(1));
  ASSERT_TRUE(stopped->pause());
  auto live = open();
  const auto took = hand_over(std::move(held), live, 12);
  print("hand-overs beside 40 waiters of a stopped process", took);
  EXPECT_LE(longest(took), kFirstTry + 1s + kBusyMachine);
  const auto slow = std::count_if(took.begin(), took.end(), [](auto each) { return each > 300ms; });
  EXPECT_LE(slow, 1) << "one first try is let pass, and no second";
  EXPECT_TRUE(so_many_wait(0));
  // They are back when they are awake.
  stopped->resume();
  for (int i = 0; i < kWaiters; ++i) ASSERT_EQ(stopped->read_line(patience()), "granted") << i;
}

// Each lets its first try pass, and the lock is not unused for longer than is stated.
TEST_F(RedisStopped, P09_ManyStoppedProcessesCostOneBoundEachAtMost) {
  constexpr int kProcesses = 12;
  const std::string poll = "&poll=200ms";
  auto holder = open(poll);
  auto held = holder.lock("x")->acquire();
  std::vector<std::unique_ptr<Process>> stopped;
  for (int i = 0; i < kProcesses; ++i) {
    stopped.push_back(waiters(1, poll));
    ASSERT_TRUE(so_many_wait(i + 1));
  }
  ASSERT_TRUE(so_many_listen(kProcesses));
  for (const auto& one : stopped) ASSERT_TRUE(one->pause());
  auto live = open(poll);
  const auto took = hand_over(std::move(held), live, 16);
  print("hand-overs beside 12 stopped processes, poll 200 ms", took);
  EXPECT_LE(longest(took), kFirstTry + 5 * 200ms + kBusyMachine);
  EXPECT_LT(took.back(), 300ms) << "all are gone by now";
}

TEST_F(RedisStopped, P08_AKilledProcessWhoseChildLivesHearsNothing) {
  constexpr int kWaiters = 40;
  auto holder = open();
  auto held = holder.lock("x")->acquire();
  const auto killed = waiters(kWaiters, {}, true);
  ASSERT_TRUE(so_many_wait(kWaiters));
  ASSERT_TRUE(so_many_listen(1));
  killed->write("go\n");
  const auto line = killed->read_line(patience());
  ASSERT_TRUE(line && line->starts_with("child ")) << line.value_or("nothing");
  const auto child = std::stoi(line->substr(6));
  killed->kill_and_wait();
  EXPECT_TRUE(so_many_listen(0)) << "the child keeps no connection";
  auto live = open("&poll=30s");
  const auto took = hand_over(std::move(held), live, 8);
  ASSERT_EQ(::kill(child, 0), 0) << "it should have lived until here";
  ::kill(child, SIGKILL);
  print("hand-overs beside 40 waiters of a killed process", took);
  EXPECT_LE(longest(took), 300ms);
}

// A clock that goes back must not make half a second an hour.
TEST(RedisClock, AFirstTryOfADeadWaiterEndsThoughTheClockGoesBack) {
  // Where other clients lock, the next in line is woken, not handed the lock.
  constexpr std::string_view kOthersToo = "&key=%7Bname%7D";
  WithWallClock<RedisServer> server(DLOCK_CLOCK_SHIM);
  server.start();
  RedisClient client(server.port());
  auto locks = open_redis(redis_url(server.port(), kOthersToo));
  auto held = locks.lock("x")->acquire();
  ProcessOptions options;
  options.argv = {DLOCK_REDIS_WAITERS, redis_url(server.port(), kOthersToo), "x", "1"};
  Process waiter(std::move(options));
  ASSERT_TRUE(eventually(patience(), [&] {
    return client.ask({"ZCARD", "{x}%queue"}).integer == 1 &&
           client.ask({"PUBSUB", "CHANNELS"}).items.size() == 1;
  }));
  ASSERT_TRUE(waiter.pause());
  held.release();
  EXPECT_EQ(client.ask({"EXISTS", "{x}%next"}).integer, 1) << "it has the first try";
  server.clock().be_wrong_by(-1h);
  waiter.kill_and_wait();
  EXPECT_FALSE(locks.status("x").held);
  try {
    locks.evict("x", 1, {.at_once = true});
    ADD_FAILURE() << "nobody holds it";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::not_found) << error.what();
  }
  auto next = locks.lock("x")->try_acquire({.wait = 5s});
  EXPECT_TRUE(next) << "free, and nobody gets it";
}

}  // namespace
}  // namespace dlock::testkit
