// SPDX-License-Identifier: Apache-2.0
//
// What a lock on Memcached costs, counted at a proxy and by the server; exclusion and tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "testkit/fault_proxy.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

class MemcachedCost : public MemcachedTest {};

TEST_F(MemcachedCost, AcquireIsTwoRoundTripsAndReleaseOne) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port()));
  locks.connect();
  // The first acquire of a process asks whether a migration comes to this store.
  EXPECT_FALSE(locks.lock("orders/1")->acquire().release());
  const auto lock = locks.lock("orders/42");
  const auto turns = [&] { return proxy.stats().turns; };
  const auto commands = [&](const char* name) { return stat(port(), name); };

  auto before = turns();
  auto held = lock->acquire();
  EXPECT_EQ(turns() - before, 3U) << "a name without a counter";
  before = turns();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(turns() - before, 1U);

  const auto gets = commands("cmd_get");
  const auto sets = commands("cmd_set");
  const auto incrs = commands("incr_hits");
  for (int i = 0; i < 10; ++i) {
    before = turns();
    held = lock->acquire();
    EXPECT_EQ(turns() - before, 2U);
    before = turns();
    EXPECT_FALSE(held.release());
    EXPECT_EQ(turns() - before, 1U);
  }
  EXPECT_EQ(commands("cmd_get") - gets, 0);
  EXPECT_EQ(commands("cmd_set") - sets, 10);
  EXPECT_EQ(commands("incr_hits") - incrs, 10);
  EXPECT_FALSE(has_key(port(), "dlock:orders/42"));

  // Busy is one round trip.
  auto others = open_memcached(url());
  const auto theirs = others.lock("orders/42")->acquire();
  before = turns();
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_EQ(turns() - before, 1U);
}

/// Counts requests of the self-test.
std::shared_ptr<std::atomic<int>> count_self_tests(FaultProxy& proxy) {
  auto count = std::make_shared<std::atomic<int>>(0);
  proxy.on_data([count](Direction direction, ConnectionId, std::string_view bytes) {
    const bool is_test = bytes.find("%self-test-") != std::string_view::npos;
    if (direction == Direction::to_server && is_test) ++*count;
    return Verdict::forward;
  });
  return count;
}

TEST_F(MemcachedCost, TheSelfTestIsTwoRoundTripsBeforeTheFirstLockAndNoneLater) {
  FaultProxy proxy(port());
  const auto tests = count_self_tests(proxy);
  auto locks = open_memcached(memcached_url(proxy.port()));
  locks.connect();
  EXPECT_FALSE(locks.status("a").held);
  EXPECT_EQ(*tests, 0);
  const auto before = proxy.stats().turns;
  auto held = locks.lock("a")->acquire();
  EXPECT_EQ(*tests, 2);
  EXPECT_EQ(proxy.stats().turns - before, 2U + 3U) << "of a name without a counter";
  EXPECT_FALSE(held.release());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(locks.lock(fmt::format("b/{}", i))->acquire().release());
  }
  proxy.drop_all();
  EXPECT_FALSE(locks.lock("a")->acquire({.wait = 20s}).release());
  EXPECT_EQ(*tests, 2) << "another connection to the same run of the server";
  server_.restart();
  EXPECT_FALSE(locks.lock("a")->acquire({.wait = 20s}).release());
  EXPECT_EQ(*tests, 4);
}

TEST_F(MemcachedCost, ManyAtOnceShareTheSelfTest) {
  FaultProxy proxy(port());
  const auto tests = count_self_tests(proxy);
  auto locks = open_memcached(memcached_url(proxy.port()));
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_FALSE(locks.lock(fmt::format("a/{}", t))->acquire({.wait = 20s}).release());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*tests, 2);
}

TEST_F(MemcachedCost, EachServerOfAListIsTestedBeforeItsFirstLock) {
  MemcachedServer second;
  second.start();
  FaultProxy proxies[] = {FaultProxy(port()), FaultProxy(second.port())};
  const std::shared_ptr<std::atomic<int>> tests[] = {count_self_tests(proxies[0]),
                                                     count_self_tests(proxies[1])};
  auto locks = open_memcached(
      fmt::format("memcached://127.0.0.1:{},127.0.0.1:{}", proxies[0].port(), proxies[1].port()));
  const auto sum = [&] { return *tests[0] + *tests[1]; };
  EXPECT_FALSE(locks.lock("a")->acquire().release());
  EXPECT_EQ(sum(), 2) << "of one server alone";
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(locks.lock(fmt::format("b/{}", i))->acquire().release());
  }
  EXPECT_EQ(*tests[0], 2);
  EXPECT_EQ(*tests[1], 2);
  const auto reports = locks.self_test("default");
  ASSERT_EQ(reports.size(), 2U);
  for (const auto& report : reports) {
    ASSERT_EQ(report.steps.size(), 5U);
    for (const auto& step : report.steps) {
      EXPECT_EQ(step.result, SelfTestReport::Result::passed) << step.name;
    }
  }
}

TEST_F(MemcachedCost, FiftyWaitersArePolledInOneRequest) {
  constexpr int kNames = 50;
  auto holders = open_memcached(url());
  std::vector<LockHandle> held;
  held.reserve(kNames);
  for (int i = 0; i < kNames; ++i) held.push_back(holders.lock(fmt::format("n/{}", i))->acquire());

  FaultProxy proxy(port());
  auto waiters = open_memcached(memcached_url(proxy.port()));
  std::atomic<int> granted{0};
  std::vector<std::shared_ptr<DistributedLock>> locks;
  std::mutex mutex;
  std::vector<LockHandle> got;
  for (int i = 0; i < kNames; ++i) {
    locks.push_back(waiters.lock(fmt::format("n/{}", i)));
    locks.back()->start_acquire({.wait = 60s}, [&](error_code ec, LockHandle handle) {
      const std::lock_guard lock(mutex);
      EXPECT_FALSE(ec);
      got.push_back(std::move(handle));
      ++granted;
    });
  }
  // All of them are in the polls when one poll asks for all keys.
  std::int64_t gets = stat(port(), "cmd_get");
  std::uint64_t turns = proxy.stats().turns;
  ASSERT_TRUE(eventually(patience(), [&] {
    const auto last_gets = std::exchange(gets, stat(port(), "cmd_get"));
    const auto last_turns = std::exchange(turns, proxy.stats().turns);
    return turns > last_turns &&
           (gets - last_gets) >= 50 * static_cast<std::int64_t>(turns - last_turns);
  }));
  const auto start = Clock::now();
  gets = stat(port(), "cmd_get");
  turns = proxy.stats().turns;
  ASSERT_TRUE(eventually(patience(), [&] { return proxy.stats().turns >= turns + 40; }));
  const auto polls = proxy.stats().turns - turns;
  const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto keys = stat(port(), "cmd_get") - gets;
  EXPECT_NEAR(static_cast<double>(keys) / static_cast<double>(polls), 51, 4);
  RecordProperty("polls_per_second", fmt::format("{:.0f}", static_cast<double>(polls) / seconds));
  EXPECT_LT(static_cast<double>(polls) / seconds, 40) << "the pause has not grown";

  held.clear();
  EXPECT_TRUE(eventually(patience(), [&] { return granted == kNames; }));
}

TEST_F(MemcachedCost, F81_TokensRiseOverTwoHundredGrantsAndALostCounter) {
  auto one = open_memcached(url());
  auto two = open_memcached(url());
  std::uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    auto& locks = i % 2 == 0 ? one : two;
    auto held = locks.lock("token")->acquire();
    ASSERT_TRUE(held.token());
    EXPECT_GT(*held.token(), last) << i;
    EXPECT_LT(*held.token(), 1ULL << 53U);
    last = *held.token();
    if (i % 50 == 25) delete_key(port(), "dlock:token%t");
    if (i == 110) talk(port(), "flush_all", "\r\n");
    EXPECT_EQ(static_cast<bool>(held.release()), i == 110) << i;
  }
}

TEST_F(MemcachedCost, SixteenThreadsOfTwoManagersExcludeEachOther) {
  auto one = open_memcached(url("?poll_interval=2ms"));
  auto two = open_memcached(url("?poll_interval=2ms"));
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  int counter = 0;
  std::uint64_t last = 0;
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      const auto lock = (t % 2 == 0 ? one : two).lock("counter");
      for (int i = 0; i < 10; ++i) {
        auto held = lock->acquire({.wait = 60s});
        if (++inside != 1) ++overlaps;
        if (*held.token() <= last) ++overlaps;
        last = *held.token();
        ++counter;
        --inside;
        EXPECT_FALSE(held.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 160);
  EXPECT_EQ(overlaps, 0);
}

TEST_F(MemcachedCost, StatusAndBreak) {
  auto locks = open_memcached(url("?app=test"));
  EXPECT_FALSE(locks.status("a b").held);
  auto held = locks.lock("a b")->acquire();
  const auto status = locks.status("a b");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, held.token());
  EXPECT_EQ(status.owner->app, "test");
  EXPECT_GT(status.remaining, 25s);
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const LockError& error) {
      return error.code();
    }
    return boost::system::error_code();
  };
  EXPECT_EQ(code_of([&] { locks.evict("a b", *held.token() + 1, {.at_once = true}); }),
            errc::not_holder);
  EXPECT_EQ(code_of([&] { locks.evict("nobody", 1, {.at_once = true}); }), errc::not_found);
  EXPECT_EQ(code_of([&] { locks.evict("a b", *held.token(), {.at_once = true}); }),
            boost::system::error_code());
  EXPECT_FALSE(locks.status("a b").held);
  EXPECT_EQ(held.release(), errc::lock_lost);
  const auto report = locks.inspect();
  ASSERT_TRUE(report.at(0).capabilities);
  EXPECT_EQ(report.at(0).capabilities->guarantee, Guarantee::best_effort);
  EXPECT_FALSE(report.at(0).capabilities->can_list);
}

TEST_F(MemcachedCost, ExclusiveIsRefusedWithTheReason) {
  auto locks = open_memcached(url("?require=exclusive"));
  try {
    locks.connect();
    FAIL() << "it promised exclusive";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_unsafe);
    EXPECT_THAT(error.what(), testing::HasSubstr("-M"));
  }
}

TEST_F(MemcachedCost, F28_F29_LeasesThatCannotBeKeptAreRefused) {
  auto locks = open_memcached(url());
  const auto lock = locks.lock("x");
  for (const auto lease : {1000ms, 2999ms, std::chrono::milliseconds(30 * 24h)}) {
    Diagnostics diagnostics;
    error_code ec;
    (void)lock->acquire({.lease = lease, .diagnostics = &diagnostics}, {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument) << lease.count();
    EXPECT_THAT(diagnostics.server_text, testing::HasSubstr("gives 3s to"));
  }
  EXPECT_THROW(open_memcached(url("?lease=1s")), LockError);
  EXPECT_THROW(open_memcached(url("?lease=2592000s")), LockError);
  auto held = lock->acquire({.lease = 30 * 24h - 1s});
  EXPECT_TRUE(has_key(port(), "dlock:x"));
  EXPECT_FALSE(held.release());
}

}  // namespace
}  // namespace dlock::testkit
