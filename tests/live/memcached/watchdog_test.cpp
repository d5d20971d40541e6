// SPDX-License-Identifier: Apache-2.0
//
// Leases that are renewed for as long as they should be, and no longer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "dlock/async.hpp"
#include "testkit/fault_proxy.hpp"
#include "tests/live/memcached/support.hpp"
#include "tests/support/acquired.hpp"
#include "tests/support/memcached_watch.hpp"

namespace dlock::testkit {
namespace {

class MemcachedWatchdog : public MemcachedTest {};

TEST_F(MemcachedWatchdog, F05_AJobThreeLeasesLongKeepsItsLockAndItsEndEndsTheRenewals) {
  MemcachedWatch watch(port(), "fetchers mutations");
  int seen = 0;
  const auto requests = [&] {
    watch.read([&](std::string_view line) {
      if (line.find(MemcachedWatch::of_key("dlock:x")) != line.npos) ++seen;
    });
    return seen;
  };
  auto locks = open_memcached(url("?lease=3s"));
  auto held = locks.lock("x")->acquire();
  StateLog states(held);
  // A rival who asks all the while; his polls ask for the key, too, so they are over afterwards.
  {
    auto others = open_memcached(url("?lease=3s"));
    EXPECT_FALSE(others.lock("x")->try_acquire({.wait = 9500ms}));
  }
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_TRUE(states.entries_of(HandleState::lost).empty());
  // It is still renewed: look and store, each second.
  const auto before = requests();
  ASSERT_TRUE(eventually(patience(), [&] { return requests() >= before + 4; }));
  EXPECT_FALSE(held.release());
  ASSERT_TRUE(eventually(patience(), [&] { return !has_key(port(), "dlock:x"); }));

  // What comes after this key in the server's own count (lines of several threads arrive in any
  // order; our looks came before it) was sent after the release.
  talk(port(), "set end 0 0 1\r\nx", "STORED");
  std::vector<std::uint64_t> requested;
  std::optional<std::uint64_t> ended;
  const auto look = [&] {
    watch.read([&](std::string_view line) {
      if (line.find(MemcachedWatch::of_key("dlock:x")) != line.npos) {
        requested.push_back(MemcachedWatch::number_of(line));
      }
      if (line.find(MemcachedWatch::of_key("end")) != line.npos) {
        ended = MemcachedWatch::number_of(line);
      }
    });
    return ended && std::any_of(requested.begin(), requested.end(),
                                [&](std::uint64_t number) { return number > *ended; });
  };
  EXPECT_FALSE(eventually(within(4s), look)) << "renewed after its release";
  EXPECT_TRUE(ended);
}

// All that are due in a look and a round trip of stores for each portion, portions beside each
// other: no renewal is late by a third of a lease, and none waits until half its lease is gone
// where the wire is quick.
TEST_F(MemcachedWatchdog, F82_TenThousandLocksAreRenewedInBatchesThroughADelay) {
  constexpr int kLocks = 10'000;
  constexpr auto kLease = 9s;
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=9s"));
  locks.connect();
  Acquired acquired;
  for (int i = 0; i < kLocks; ++i) {
    locks.lock(fmt::format("n/{}", i))->async_acquire({.wait = 30s}, acquired.one());
  }
  ASSERT_TRUE(acquired.all(kLocks));
  ASSERT_EQ(acquired.failed(), 0);
  auto& held = acquired.held();
  proxy.delay(Direction::to_client, 50ms);
  const auto turns = proxy.stats().turns;
  const auto renewed = stat(port(), "cas_hits");
  auto shortest = std::chrono::nanoseconds(kLease);
  auto longest = std::chrono::nanoseconds(0);
  const auto all_twice = [&] {
    for (const auto& lock : held) {
      if (lock.state() != HandleState::held) ADD_FAILURE() << lock.name() << " is not held";
      const std::chrono::nanoseconds remaining = lock.remaining().value_or(0s);
      shortest = std::min(shortest, remaining);
      longest = std::max(longest, remaining);
    }
    return testing::Test::HasFailure() ||
           stat(port(), "cas_hits") >= renewed + std::int64_t{2} * kLocks;
  };
  ASSERT_TRUE(eventually(patience(), all_twice));
  const auto renewals = stat(port(), "cas_hits") - renewed;
  // A renewal is due when two thirds of the lease are left; the round trips come on top.
  const auto worst_lag = kLease * 2 / 3 - shortest;
  RecordProperty("worst_lag_ms", std::to_string(worst_lag / 1ms));
  const auto per_lock =
      static_cast<double>(proxy.stats().turns - turns) / static_cast<double>(renewals);
  RecordProperty("round_trips_per_renewal", fmt::format("{:.4f}", per_lock));
  EXPECT_LT(worst_lag, kLease / 3);
  EXPECT_LE(longest, kLease - 20ms) << "the drift margin is off";
  EXPECT_LT(per_lock, 0.05) << "in batches";
  proxy.delay(Direction::to_client, 0ms);
  for (auto& lock : held) EXPECT_FALSE(lock.release());
  EXPECT_FALSE(has_key(port(), "dlock:n/0"));
  EXPECT_FALSE(has_key(port(), fmt::format("dlock:n/{}", kLocks - 1)));
}

// A wire that takes longer than the lease for a look, a store, and both again since an answer so
// late proves little: whoever gets one of the locks finds that its holder was told.
TEST_F(MemcachedWatchdog, F82_RenewalsThatCannotKeepUpAreToldAsLossesInTime) {
  constexpr std::size_t kLocks = 60;
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=3s"));
  auto others = open_memcached(url("?lease=30s"));
  std::vector<LockHandle> held;
  held.reserve(kLocks);
  for (std::size_t i = 0; i < kLocks; ++i) {
    held.push_back(locks.lock(fmt::format("n/{}", i))->acquire());
  }
  proxy.delay(Direction::to_client, 900ms);
  std::atomic<int> taken = 0;
  std::atomic<int> not_told = 0;
  std::vector<LockHandle> next(kLocks);
  for (std::size_t i = 0; i < kLocks; ++i) {
    others.lock(fmt::format("n/{}", i))
        ->async_acquire({.wait = 8s}, [&, i](error_code ec, LockHandle got) {
          if (!ec) {
            ++taken;
            if (held[i].state() != HandleState::lost) ++not_told;
          }
          next[i] = std::move(got);
        });
  }
  ASSERT_TRUE(eventually(patience(), [&] { return taken >= 10; })) << taken;
  others.close();
  EXPECT_EQ(not_told, 0);
  proxy.delay(Direction::to_client, 0ms);
}

TEST_F(MemcachedWatchdog, F05_CancelledAcquiresLeaveNoRenewalAndNoKey) {
  auto locks = open_memcached(url("?lease=3s"));
  auto lock = locks.lock("x");
  for (int i = 0; i < 1000; ++i) {
    std::stop_source stop;
    std::thread stopper([&stop, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 7 % 500));
      stop.request_stop();
    });
    error_code ec;
    auto held = lock->acquire({.wait = 20s}, stop.get_token(), ec);
    stopper.join();
    if (held) held.release();
  }
  // A renewal is a store under condition, as a release is: once those of the last ones cancelled
  // are through, there is none for a lease.
  const auto stores = [&] { return stat(port(), "cas_hits") + stat(port(), "cas_misses"); };
  ASSERT_TRUE(eventually(patience(), [&] {
    const auto before = stores();
    return !eventually(within(3s), [&] { return stores() > before; });
  }));
  EXPECT_FALSE(has_key(port(), "dlock:x"));
}

TEST_F(MemcachedWatchdog, F27_ADelayedReplyShortensTheLease) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=3s"));
  locks.connect();
  bool armed = true;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    const bool add = direction == Direction::to_server && takes(bytes, "dlock:x");
    if (add && std::exchange(armed, false)) proxy.delay(Direction::to_client, 200ms);
    return Verdict::forward;
  });
  auto held = locks.lock("x")->acquire({.wait = 20s});
  // The reply to the add, and the one to the token's count.
  EXPECT_LE(held.remaining().value_or(1h), 3s - 400ms);
  proxy.delay(Direction::to_client, 0ms);
}

// F73: the child has the parent's socket, and must not say a word on it.
TEST_F(MemcachedWatchdog, F73_AForkedChildLeavesTheConnectionAlone) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=3s"));
  auto held = locks.lock("x")->acquire();
  const auto connections = proxy.stats().connections;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    int wrong = 0;
    try {
      LockManager mine = std::move(locks);
      LockHandle copy = std::move(held);
      if (copy.state() != HandleState::lost) wrong = 1;
      if (!copy.release()) wrong = 2;
      mine.close();
    } catch (...) {
      wrong = 3;
    }
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  StateLog states(held);
  auto others = open_memcached(url("?lease=3s"));
  EXPECT_FALSE(others.lock("x")->try_acquire({.wait = 4500ms})) << "renewed all the same";
  EXPECT_TRUE(states.entries_of(HandleState::lost).empty());
  EXPECT_FALSE(held.release());
  EXPECT_EQ(proxy.stats().connections, connections) << "the parent's connection was broken";
}

}  // namespace
}  // namespace dlock::testkit
