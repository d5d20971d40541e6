// SPDX-License-Identifier: Apache-2.0
//
// The reports to a holder, and the keys that stay, when the server, the network or an operator
// misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "backends/memcached/rules/placement.hpp"
#include "testkit/fault_proxy.hpp"
#include "tests/live/memcached/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

class MemcachedFailure : public MemcachedTest {};

error_code acquire_error(DistributedLock& lock, AcquireOptions options) {
  error_code ec;
  auto held = lock.acquire(options, {}, ec);
  return ec;
}

TEST_F(MemcachedFailure, F02_ALateReleaseLeavesTheNextOwnerAlone) {
  auto first = open_memcached(url());
  auto second = open_memcached(url());
  auto late = first.lock("x")->acquire();
  delete_key(port(), "dlock:x");  // as if its lease were over
  auto next = second.lock("x")->acquire();
  EXPECT_EQ(late.release(), errc::lock_lost);
  EXPECT_TRUE(has_key(port(), "dlock:x"));
  EXPECT_FALSE(first.lock("x")->try_acquire());
  EXPECT_FALSE(next.release());
}

// The reply is lost with its connection: found out at once, in the same acquire.
TEST_F(MemcachedFailure, F10_ALostReplyIsAdopted) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port()));
  locks.connect();
  bool armed = true;
  bool added = false;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    if (direction == Direction::to_server) added = takes(bytes, "dlock:x");
    if (direction == Direction::to_client && added && std::exchange(armed, false)) {
      return Verdict::reset;
    }
    return Verdict::forward;
  });
  auto held = locks.lock("x")->try_acquire();
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->release());
  EXPECT_FALSE(has_key(port(), "dlock:x"));
}

// The reply never comes: the caller is told in time, and nothing of his stays.
TEST_F(MemcachedFailure, F10_AnAddThatWasGivenUpLeavesNothing) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?request_timeout=300ms"));
  // Before its first lock a process tests the server.
  EXPECT_FALSE(locks.lock("first")->acquire().release());
  proxy.swallow(Direction::to_client, true);
  const auto start = Clock::now();
  EXPECT_EQ(acquire_error(*locks.lock("x"), {.wait = 0s}), errc::unavailable);
  EXPECT_LT(Clock::now() - start, 2s);
  ASSERT_TRUE(eventually(patience(), [&] { return has_key(port(), "dlock:x"); }));
  proxy.swallow(Direction::to_client, false);
  proxy.drop_all();
  const auto healed = Clock::now();
  auto others = open_memcached(url());
  auto held = others.lock("x")->acquire({.wait = 30s});
  EXPECT_LT(Clock::now() - healed, 5s) << "the lease is 30 s";
  EXPECT_FALSE(held.release());
}

TEST_F(MemcachedFailure, AnAddThatArrivesAfterTheWithdrawalIsGoneWithinALease) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?request_timeout=300ms&lease=8s"));
  locks.connect();
  bool armed = true;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    const bool add = direction == Direction::to_server && takes(bytes, "dlock:x");
    return add && std::exchange(armed, false) ? Verdict::hold : Verdict::forward;
  });
  EXPECT_EQ(acquire_error(*locks.lock("x"), {.wait = 0s}), errc::unavailable);
  // Withdrawn: a search has found nothing.
  const auto gets = stat(port(), "get_misses");
  ASSERT_TRUE(eventually(patience(), [&] { return stat(port(), "get_misses") > gets; }));
  EXPECT_FALSE(has_key(port(), "dlock:x"));
  const auto sets = stat(port(), "cmd_set");
  proxy.release_held();
  ASSERT_TRUE(eventually(patience(), [&] { return stat(port(), "cmd_set") > sets; }));
  const auto arrived = Clock::now();
  ASSERT_TRUE(eventually(patience(), [&] { return !has_key(port(), "dlock:x"); }));
  EXPECT_LT(Clock::now() - arrived, 8s);
}

// The connection breaks while the add is on its way, and the acquire goes on with a new one: the
// core hears of nothing. When the old add arrives after the release, nobody holds that lock.
TEST_F(MemcachedFailure, ACopyOfABrokenAddIsTakenAway) {
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port()));
  locks.connect();
  std::promise<void> seen;
  bool armed = true;
  proxy.on_data([&](Direction direction, ConnectionId, std::string_view bytes) {
    const bool add = direction == Direction::to_server && takes(bytes, "dlock:x");
    if (!add || !std::exchange(armed, false)) return Verdict::forward;
    seen.set_value();
    return Verdict::hold;
  });
  auto acquiring = std::async(std::launch::async, [&] { return locks.lock("x")->acquire(); });
  seen.get_future().wait();
  proxy.drop_clients();
  auto held = acquiring.get();
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(has_key(port(), "dlock:x"));
  const auto sets = stat(port(), "cmd_set");
  proxy.release_held();
  ASSERT_TRUE(eventually(patience(), [&] { return stat(port(), "cmd_set") > sets; }));
  EXPECT_TRUE(eventually(within(15s), [&] { return !has_key(port(), "dlock:x"); }))
      << "the lease is 30 s";
}

TEST_F(MemcachedFailure, F06_AStoppedServerCostsTheLockAtItsLocalDeadline) {
  auto locks = open_memcached(url("?lease=3s"));
  auto held = locks.lock("x")->acquire();
  EXPECT_LE(*held.remaining(), 3s - 20ms) << "the lease less the drift margin";
  StateLog states(held);
  server_.pause();
  const auto stopped = BoottimeClock::now();
  const auto deadline = stopped + *held.remaining();
  const auto ask_start = Clock::now();
  EXPECT_EQ(acquire_error(*locks.lock("y"), {.wait = 0s}), errc::unavailable);
  EXPECT_LT(Clock::now() - ask_start, 3s);
  ASSERT_TRUE(states.wait_for(HandleState::lost, patience()));
  const auto losses = states.entries_of(HandleState::lost);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].reason, LossReason::expired);
  // A renewal under way when the server stopped may have moved it on by a little.
  EXPECT_LT(losses[0].when, deadline + 250ms);
  server_.resume();
  auto others = open_memcached(url("?lease=3s"));
  auto next = others.lock("x")->acquire({.wait = 30s});
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(next.release());
  EXPECT_EQ(states.entries_of(HandleState::lost).size(), 1U);
}

// Taken at ten moments between two ticks of the server's clock, and cut off from it together: when
// a rival is granted one, its holder knows.
TEST_F(MemcachedFailure, WhoIsCutOffKnowsBeforeAnotherHolds) {
  constexpr int kLocks = 10;
  FaultProxy proxy(port());
  auto locks = open_memcached(memcached_url(proxy.port(), "?lease=3s"));
  auto others = open_memcached(url("?lease=3s&poll_interval=2ms&poll_interval_max=5ms"));
  const auto name = [](int i) { return fmt::format("n/{}", i); };
  std::vector<LockHandle> held;
  held.reserve(kLocks);
  const auto begin = Clock::now();
  for (int i = 0; i < kLocks; ++i) {
    eventually(begin + i * 100ms, [] { return false; });
    held.push_back(locks.lock(name(i))->acquire());
  }
  proxy.hold(Direction::to_server, true);
  std::vector<std::future<HandleState>> rivals;
  rivals.reserve(kLocks);
  for (int i = 0; i < kLocks; ++i) {
    rivals.push_back(std::async(std::launch::async, [&, i] {
      const auto next = others.lock(name(i))->acquire({.wait = 30s});
      return held[static_cast<std::size_t>(i)].state();
    }));
  }
  for (auto& rival : rivals) EXPECT_EQ(rival.get(), HandleState::lost);
  proxy.drop_all();
}

TEST_F(MemcachedFailure, AShortStopIsSurvived) {
  auto locks = open_memcached(url("?lease=6s"));
  auto held = locks.lock("x")->acquire();
  StateLog states(held);
  server_.pause();
  ASSERT_TRUE(states.wait_for(HandleState::suspect, patience()));
  server_.resume();
  ASSERT_TRUE(states.wait_for(HandleState::held, patience()));
  EXPECT_FALSE(held.release());
}

struct Wipe {
  const char* what;
  std::function<void(MemcachedServer&)> wipe;
  LossReason reason;
};

TEST_F(MemcachedFailure, F22_F31_F32_AWipedLockIsToldAtTheNextRenewal) {
  const std::vector<Wipe> wipes{
      {"F31 flush_all", [](auto& server) { talk(server.port(), "flush_all", "\r\n"); },
       LossReason::removed},
      {"F32 deleted", [](auto& server) { delete_key(server.port(), "dlock:x"); },
       LossReason::removed},
      {"F22 restarted",
       [](auto& server) {
         server.kill9();
         server.start();
       },
       LossReason::store_restarted},
      {"taken by another",
       [](auto& server) { talk(server.port(), "set dlock:x 0 5 5\r\nother", "\r\n"); },
       LossReason::taken},
  };
  for (const auto& row : wipes) {
    SCOPED_TRACE(row.what);
    auto locks = open_memcached(url("?lease=6s"));
    auto held = locks.lock("x")->acquire();
    StateLog states(held);
    row.wipe(server_);
    const auto wiped = BoottimeClock::now();
    ASSERT_TRUE(states.wait_for(HandleState::lost, patience()));
    const auto losses = states.entries_of(HandleState::lost);
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].reason, row.reason) << to_string(losses[0].reason);
    EXPECT_LT(losses[0].when - wiped, 3500ms) << "a renewal is due every 2 s";
    EXPECT_EQ(held.release(), errc::lock_lost);
    delete_key(port(), "dlock:x");
  }
}

// Somebody else's renewal finds the canary gone: the others need not wait for theirs.
TEST_F(MemcachedFailure, F31_AllLocksAreCheckedWhenTheCanaryIsGone) {
  auto locks = open_memcached(url("?lease=3s"));
  auto slow = locks.lock("slow")->acquire({.lease = 300s});
  auto fast = locks.lock("fast")->acquire();
  StateLog states(slow);
  talk(port(), "flush_all", "\r\n");
  ASSERT_TRUE(states.wait_for(HandleState::lost, within(20s)));
  EXPECT_EQ(states.entries_of(HandleState::lost)[0].reason, LossReason::removed);
}

TEST_F(MemcachedFailure, ALostCanaryAloneIsNoLoss) {
  auto locks = open_memcached(url("?lease=3s"));
  auto held = locks.lock("x")->acquire();
  delete_key(port(), "dlock:%canary");
  // The next renewal lays it again.
  ASSERT_TRUE(eventually(patience(), [&] { return has_key(port(), "dlock:%canary"); }));
  const auto gets = stat(port(), "cas_hits");
  ASSERT_TRUE(eventually(patience(), [&] { return stat(port(), "cas_hits") >= gets + 2; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST(MemcachedEviction, F19_IsToldAsEvictedAndWarnedOfOnce) {
  MemcachedServer server({"-m", "1", "-I", "512k"});
  server.start();
  const auto port = server.port();
  auto warnings = std::make_shared<Warnings>();
  auto locks = open_memcached(memcached_url(port, "?lease=9s"), warnings);
  auto held = locks.lock("orders/42")->acquire();
  StateLog states(held);
  // Keys and values as long as the lock's, hence of its slab class.
  const auto reply = talk(port, "get dlock:orders/42", "END\r\n");
  const auto size = static_cast<std::size_t>(std::stoul(reply.substr(reply.find(" 0 ") + 3)));
  const std::string value(size, '.');
  int junk = 0;
  // `me` looks without making the item recently used.
  ASSERT_TRUE(eventually(patience(), [&] {
    std::string flood;
    for (int i = 0; i < 5000; ++i) {
      flood += fmt::format("set junk:{:010} 0 0 {} noreply\r\n{}\r\n", junk++, size, value);
    }
    talk(port, flood + "version", "VERSION");
    return talk(port, "me dlock:orders/42", "\r\n").starts_with("EN");
  }));
  ASSERT_TRUE(states.wait_for(HandleState::lost, patience()));
  EXPECT_EQ(states.entries_of(HandleState::lost).at(0).reason, LossReason::evicted);
  EXPECT_GT(stat(port, "evictions"), 0);
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->count("is evicting") == 1; }));
  EXPECT_EQ(held.release(), errc::lock_lost);
}

class MemcachedPinning : public testing::TestWithParam<const char*> {};

TEST_P(MemcachedPinning, F30_ANameStaysOnItsServer) {
  std::array<MemcachedServer, 2> servers;
  StoreOptions options;
  for (auto& server : servers) {
    server.start();
    options.endpoints.push_back({"127.0.0.1", server.port()});
  }
  options.text["distribution"] = GetParam();
  const memcached::Placement placement(options);
  const memcached::KeyMap keys("dlock:{name}");
  // A new client reads this note before its first lock.
  const auto running = placement.server_of("plans-in", keys);
  const auto stopped = 1 - running;
  std::array<std::string, 2> names;
  for (int i = 0; names[0].empty() || names[1].empty(); ++i) {
    const auto name = fmt::format("n/{}", i);
    names.at(placement.server_of(name, keys)) = name;
  }
  const auto url = fmt::format(
      "memcached://127.0.0.1:{},127.0.0.1:{}?lease=6s&request_timeout=500ms&distribution={}",
      servers[0].port(), servers[1].port(), GetParam());
  auto locks = open_memcached(url);
  auto on_stopped = locks.lock(names.at(stopped))->acquire();
  auto on_running = locks.lock(names.at(running))->acquire();
  EXPECT_TRUE(has_key(servers[0].port(), "dlock:" + names[0]));
  EXPECT_TRUE(has_key(servers[1].port(), "dlock:" + names[1]));
  StateLog states(on_stopped);
  servers.at(stopped).pause();

  auto others = open_memcached(url);
  const auto start = Clock::now();
  EXPECT_EQ(acquire_error(*others.lock(names.at(stopped)), {.wait = 0s}), errc::unavailable);
  EXPECT_FALSE(has_key(servers.at(running).port(), "dlock:" + names.at(stopped)));
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_EQ(acquire_error(*others.lock(names.at(running)), {.wait = 0s}), errc::timed_out);
  ASSERT_TRUE(states.wait_for(HandleState::lost, patience()));
  EXPECT_FALSE(has_key(servers.at(running).port(), "dlock:" + names.at(stopped)));
  EXPECT_EQ(on_running.state(), HandleState::held) << "its server runs";
  EXPECT_FALSE(on_running.release());

  servers.at(stopped).resume();
  auto next = others.lock(names.at(stopped))->acquire({.wait = 60s});
  EXPECT_FALSE(next.release());
}

INSTANTIATE_TEST_SUITE_P(Distributions, MemcachedPinning,
                         testing::Values("sha256", "modula", "ketama"));

TEST(MemcachedServers, AStoppedServerDoesNotHoldUpTheEnd) {
  MemcachedServer server;
  server.start();
  auto locks =
      open_memcached(memcached_url(server.port(), "?request_timeout=500ms&release_timeout=500ms"));
  auto held = locks.lock("x")->acquire();
  server.pause();
  const auto start = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - start, 6s);
}

TEST(MemcachedServers, OneThatIsDownIsUnavailableInTime) {
  MemcachedServer server;
  auto locks = open_memcached(memcached_url(server.port(), "?connect_timeout=500ms"));
  Diagnostics diagnostics;
  error_code ec;
  const auto start = Clock::now();
  (void)locks.lock("x")->acquire({.wait = 30s, .diagnostics = &diagnostics}, {}, ec);
  EXPECT_EQ(ec, errc::unavailable);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_THAT(diagnostics.server_text, HasSubstr(std::to_string(server.port())));
  server.start();
  // The next try may come after this acquire's patience, but soon.
  const auto lock = locks.lock("x");
  EXPECT_TRUE(eventually(within(10s), [&] { return !acquire_error(*lock, {.wait = 30s}); }));
}

// F28: what the server makes of an exptime; the usable lease rests on it.
TEST_F(MemcachedFailure, F28_AnItemLivesLongerThanItsExptimeLessOne) {
  struct Sample {
    std::string key;
    int exptime;
    Clock::time_point sent, stored, seen, gone;
  };
  std::vector<Sample> samples;
  const auto begin = Clock::now();
  for (int i = 0; i < 60; ++i) {
    Sample sample{fmt::format("k{}", i), 2 + i % 3, Clock::now(), {}, {}, {}};
    talk(port(), fmt::format("set {} 0 {} 1\r\nx", sample.key, sample.exptime), "STORED");
    sample.stored = sample.seen = Clock::now();
    samples.push_back(sample);
    // Spread over more than a tick of the server's clock.
    eventually(begin + (i + 1) * 20ms, [] { return false; });
  }
  ASSERT_TRUE(eventually(patience(), [&] {
    std::string command = "get";
    for (const auto& sample : samples) command += " " + sample.key;
    const auto sent = Clock::now();
    const auto reply = talk(port(), command, "END\r\n");
    const auto answered = Clock::now();
    bool any = false;
    for (auto& sample : samples) {
      if (reply.find("VALUE " + sample.key + " ") != std::string::npos) {
        sample.seen = sent;
        any = true;
      } else if (sample.gone == Clock::time_point{}) {
        sample.gone = answered;
      }
    }
    return !any;
  }));
  for (const auto& sample : samples) {
    EXPECT_GT(sample.gone - sample.sent, std::chrono::seconds(sample.exptime - 1)) << sample.key;
    // The server counts its seconds by a timer, which a busy machine may run late.
    EXPECT_LT(sample.seen - sample.stored, std::chrono::seconds(sample.exptime) + 500ms)
        << sample.key;
  }
}

}  // namespace
}  // namespace dlock::testkit
