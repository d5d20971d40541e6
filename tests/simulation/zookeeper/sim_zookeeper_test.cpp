// SPDX-License-Identifier: Apache-2.0
//
// The production backend over the simulated ensemble.
#include <gtest/gtest.h>

#include "backends/zookeeper/rules/permits.hpp"
#include "tests/simulation/zookeeper/bench.hpp"

namespace dlock::simulation {
namespace {

constexpr auto kLock = "orders/42";

struct HolderAndWaiter {
  Program& a;
  Program& b;
  AttemptPtr held;
  AttemptPtr waits;
};

/// a has the lock, and b has asked for it.
HolderAndWaiter holder_and_waiter(EnsembleBench& bench) {
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  EXPECT_TRUE(bench.granted(held));
  auto& b = bench.program("b");
  auto waits = b.acquire(kLock);
  return {a, b, held, waits};
}

TEST(SimZooKeeper, AnUncontendedAcquireIsOneRoundTrip) {
  EnsembleBench bench;
  auto& program = bench.program("a");
  auto first = program.acquire(kLock);
  ASSERT_TRUE(bench.granted(first)) << first->ec.message() << bench.world.trace_text();
  program.release(first);
  bench.run(seconds(1));
  const auto before = bench.store.client_of(program.process).round_trips();
  auto again = program.acquire(kLock);
  ASSERT_TRUE(bench.granted(again));
  EXPECT_EQ(bench.store.client_of(program.process).round_trips() - before, 1U);
  EXPECT_GT(*again->handle.token(), 0U);
}

TEST(SimZooKeeper, AReleaseHandsOverToTheWaiter) {
  EnsembleBench bench;
  auto [a, b, first, second] = holder_and_waiter(bench);
  bench.run(seconds(5));
  EXPECT_FALSE(second->told);
  const auto token = first->handle.token();
  a.release(first);
  ASSERT_TRUE(bench.granted(second, milliseconds(500))) << bench.world.trace_text();
  EXPECT_GT(*second->handle.token(), *token);
  b.release(second);
  bench.run(seconds(30));
  const auto left = bench.store.belongings();
  for (const auto& key : left.keys) EXPECT_TRUE(bench.store.is_permitted(key)) << key;
  EXPECT_TRUE(left.watches.empty()) << *left.watches.begin();
}

TEST(SimZooKeeper, TheNodeOfALostReplyIsAdopted) {
  EnsembleBench bench;
  auto& a = bench.program("a");
  ASSERT_TRUE(bench.warm_up(a, kLock));
  bench.network.arm(a.process, Fault::reset_after, [] {});
  auto lost = a.acquire(kLock);
  ASSERT_TRUE(bench.granted(lost)) << bench.world.trace_text();
  bench.run(seconds(10));
  EXPECT_EQ(bench.contenders(kLock), 1U);
}

// Which of our faults may leave copies: none stays.
TEST(SimZooKeeper, NoMessageFaultLeavesACopy) {
  for (int fault = 0; fault <= static_cast<int>(Fault::overtaken); ++fault) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      EnsembleBench bench(seed);
      auto& a = bench.program("a");
      ASSERT_TRUE(bench.warm_up(a, kLock));
      bench.network.arm(a.process, static_cast<Fault>(fault), [] {});
      auto struck = a.acquire(kLock);
      ASSERT_TRUE(bench.granted(struck)) << bench.world.trace_text();
      bench.run(seconds(10));
      EXPECT_EQ(bench.contenders(kLock), 1U)
          << to_string(static_cast<Fault>(fault)) << " " << seed << bench.world.trace_text();
      EXPECT_FALSE(struck->lost_at) << to_string(static_cast<Fault>(fault)) << " " << seed;
    }
  }
}

TEST(SimZooKeeper, WhoIsCutOffIsToldBeforeTheRivalOwnsTheLock) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EnsembleBench bench(seed);
    const auto cut = [&](Program& a) { bench.network.cut(a.process); };
    EXPECT_GT(told_before(bench, -1, kLock, cut).value(), Duration{}) << seed;
  }
}

TEST(SimZooKeeper, AHolderOnACutFollowerIsToldBeforeTheRivalOwnsTheLock) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EnsembleBench bench(seed, {.sync_limit = 10});
    auto& servers = bench.store.servers();
    const int follower = (servers.leader() + 1) % ensemble::Ensemble::kServers;
    const auto cut = [&](Program&) { servers.cut(follower, seconds(60)); };
    EXPECT_GT(told_before(bench, follower, kLock, cut).value(), Duration{}) << seed;
  }
}

TEST(SimZooKeeper, AHolderOnADeposedLeaderIsToldBeforeTheRivalOwnsTheLock) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EnsembleBench bench(seed, {.sync_limit = 10});
    auto& servers = bench.store.servers();
    const int leader = servers.leader();
    const auto cut = [&](Program&) {
      servers.cut(leader, seconds(60));
      servers.leave_leader(leader);
    };
    EXPECT_GT(told_before(bench, leader, kLock, cut).value(), Duration{}) << seed;
    EXPECT_TRUE(servers.is_leading(leader)) << "it still thinks so, or the test shows nothing";
  }
}

// Silent first, then one write whose server is cut off before its leader's next ping: the case that
// stamp + 2T/3 alone does not cover.
TEST(SimZooKeeper, AHolderThatWasSilentBeforeTheCutIsToldBeforeTheRivalOwnsTheLock) {
  auto least = Duration::max();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    EnsembleBench bench(seed, {.tick = milliseconds(seed % 2 == 0 ? 1000 : 750), .sync_limit = 10});
    auto& servers = bench.store.servers();
    const int follower = (servers.leader() + 1) % ensemble::Ensemble::kServers;
    const auto pause_and_cut = [&](Program& a) {
      a.process.pause();
      bench.run(bench.world.between(milliseconds(100), milliseconds(1900)));
      servers.cut_after_write(bench.store.session_of(a.process), seconds(60));
      a.process.resume();
    };
    const auto before = told_before(bench, follower, kLock, pause_and_cut).value();
    EXPECT_GT(before, Duration{}) << seed;
    least = std::min(least, before);
  }
  EXPECT_LT(least, seconds(1)) << "not as close as it can be";
}

TEST(SimZooKeeper, APausedHolderLearnsOfItsLossWhenItRuns) {
  EnsembleBench bench;
  auto [a, b, held, rival] = holder_and_waiter(bench);
  bench.run(seconds(2));
  a.process.pause();
  ASSERT_TRUE(bench.granted(rival));
  EXPECT_FALSE(held->lost_at);
  a.process.resume();
  EXPECT_EQ(held->handle.state(), HandleState::lost);
  bench.run(seconds(5));
  EXPECT_TRUE(held->lost_at);
  auto third = a.acquire(kLock);
  bench.run(seconds(10));
  EXPECT_FALSE(third->told);
  b.release(rival);
  EXPECT_TRUE(bench.granted(third));
}

TEST(SimZooKeeper, AnElectionLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EnsembleBench bench(seed);
    auto [a, b, held, waits] = holder_and_waiter(bench);
    bench.run(seconds(1));
    bench.store.servers().kill(bench.store.servers().leader(), milliseconds(500));
    bench.run(seconds(8));
    // It may take longer than the holder can believe.
    EXPECT_TRUE(!waits->told || held->lost_at.value_or(kNever) < waits->at) << seed;
    a.release(held);
    EXPECT_TRUE(bench.granted(waits, seconds(20))) << seed << bench.world.trace_text();
  }
}

TEST(SimZooKeeper, ACrashedHolderIsFollowedAfterItsSession) {
  EnsembleBench bench;
  auto [a, b, held, rival] = holder_and_waiter(bench);
  bench.run(seconds(1));
  const auto crashed = bench.world.now();
  a.process.crash();
  bench.store.on_crash(a.process);
  ASSERT_TRUE(bench.granted(rival));
  EXPECT_GT(rival->at - crashed, seconds(2));
  EXPECT_LT(rival->at - crashed, seconds(5));
}

// A leader that cannot reach the others keeps what it was asked, for longer than two sessions, and
// ends no session meanwhile: afterwards it carries out a create that nobody waits for.
TEST(SimZooKeeper, ACreateThatComesAfterTwoSessionsIsTakenAwayAgain) {
  EnsembleBench bench(1, {.sync_limit = 10});
  auto& servers = bench.store.servers();
  bench.store.pin(servers.leader());
  auto& a = bench.program("a");
  ASSERT_TRUE(bench.warm_up(a, kLock));
  servers.cut(servers.leader(), milliseconds(9500));
  auto gives_up = a.acquire(kLock, seconds(1));
  bench.run(seconds(20));
  ASSERT_TRUE(gives_up->told);
  EXPECT_TRUE(gives_up->ec);
  EXPECT_TRUE(servers.is_whole());
  EXPECT_EQ(bench.contenders(kLock), 0U) << bench.world.trace_text();
}

// The waiter's server has told it that its predecessor has gone, and knows nothing of what follows:
// that the others were asked to take the waiter's own place away. It heard no server for longer
// than half a session, so it asks before it believes.
TEST(SimZooKeeper, ATurnThatCameByAnOldWriteIsAskedForAgain) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EnsembleBench bench(seed, {.sync_limit = 10});
    auto& servers = bench.store.servers();
    const int follower = (servers.leader() + 1) % ensemble::Ensemble::kServers;
    bench.store.pin(servers.leader());
    auto& a = bench.program("a");
    auto held = a.acquire(kLock);
    ASSERT_TRUE(bench.granted(held));
    bench.store.pin(follower);
    auto& b = bench.program("b");
    // What its own write proves then lasts for as long as it can.
    ASSERT_TRUE(bench.warm_up(b, "other", bench.store.lease() / 2 + milliseconds(20)));
    auto waits = b.acquire(kLock);
    bench.run(milliseconds(100));
    b.process.pause();
    a.release(held);
    bench.run(milliseconds(100));
    servers.cut(follower, seconds(60));
    ASSERT_TRUE(bench.store.strike(Fault::deleted, b.process, kLock));
    bench.run(bench.store.lease() * 3 / 4 - milliseconds(200));
    EXPECT_EQ(bench.contenders(kLock), 0U);
    b.process.resume();
    bench.run(milliseconds(500));
    EXPECT_FALSE(waits->told) << seed << bench.world.trace_text();
  }
}

// The same run once more, with another wish: a token that is not above the one asked for is none.
TEST(SimZooKeeper, ATokenIsAboveTheOneAskedForAndNotTheSame) {
  const auto token_above = [](std::uint64_t min_token) {
    EnsembleBench bench;
    auto held = bench.program("a").acquire(kLock, std::nullopt, min_token);
    EXPECT_TRUE(bench.granted(held));
    return held->handle.token().value_or(0);
  };
  const auto token = token_above(0);
  ASSERT_GT(token, 0U);
  EXPECT_EQ(token_above(token - 1), token);
  EXPECT_GT(token_above(token), token);
}

TEST(SimZooKeeper, ANodeRemovedByHandIsReported) {
  EnsembleBench bench;
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  ASSERT_TRUE(bench.granted(held));
  bench.run(seconds(1));
  int forgotten = 0;
  bench.store.on_forgotten = [&](const std::string& lock, const std::string&, Fault cause) {
    EXPECT_EQ(lock, kLock);
    EXPECT_EQ(cause, Fault::deleted);
    ++forgotten;
  };
  EXPECT_TRUE(bench.store.strike(Fault::deleted, a.process, kLock));
  bench.run(milliseconds(100));
  EXPECT_EQ(forgotten, 1);
  EXPECT_TRUE(held->lost_at);
}

/// Asks for the only permit of a semaphore.
AttemptPtr acquire_permit(Program& program) {
  core::Acquisition::Request request;
  request.name = kLock;
  request.mode = Mode::shared;
  request.permits = 1;
  request.limit = 1;
  request.limits.connect_timeout = program.store->setup().settings.connect_timeout;
  request.limits.retry = program.store->setup().settings.retry;
  return program.start(std::move(request));
}

// A session that its client has abandoned lives on at the servers, and may end at any moment.
TEST(SimZooKeeper, ALeaseOfAnAbandonedSessionDoesNotCountAndIsRemoved) {
  EnsembleBench bench;
  auto& a = bench.program("a");
  auto held = acquire_permit(a);
  ASSERT_TRUE(bench.granted(held)) << held->ec.message();
  auto& b = bench.program("b");
  auto waits = acquire_permit(b);
  auto& abandoned = bench.program("abandoned");
  ASSERT_TRUE(bench.warm_up(abandoned, "other"));
  ASSERT_FALSE(waits->told);
  const auto path = SimZooKeeper::path_of(kLock) + "/";
  const auto line = bench.store.servers().committed().children(path + "locks");
  ASSERT_EQ(line.size(), 1U) << "b waits with the semaphore's lock";
  const std::string owner(zookeeper::lease_owner(line.front()));
  // As b had made it there.
  bool is_made = false;
  bench.store.servers().submit({.kind = ensemble::Operation::Kind::create,
                                .path = path + "leases/" + zookeeper::lease_prefix(owner),
                                .mode = ensemble::Operation::Mode::ephemeral_sequential,
                                .session = bench.store.session_of(abandoned.process)},
                               [&] { is_made = true; });
  bench.run(seconds(1));
  EXPECT_TRUE(is_made);
  EXPECT_FALSE(waits->told) << bench.world.trace_text();
  const auto leases = [&] { return bench.store.servers().committed().children(path + "leases"); };
  EXPECT_EQ(leases().size(), 1U) << "the lease of a alone is left";
  a.release(held);
  ASSERT_TRUE(bench.granted(waits)) << bench.world.trace_text();
  ASSERT_EQ(leases().size(), 1U);
  const auto* own = bench.store.servers().committed().find(path + "leases/" + leases().front());
  EXPECT_EQ(own->stat.owner, bench.store.session_of(b.process));
}

}  // namespace
}  // namespace dlock::simulation
