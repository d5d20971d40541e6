// SPDX-License-Identifier: Apache-2.0
//
// The production backend over the simulated Redis: what one holder and one waiter meet.
#include "tests/simulation/redis/sim_redis.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "tests/simulation/redis/bench.hpp"

namespace dlock::simulation::redis {
namespace {

TEST(SimulatedRedis, DeclaresWhatItsSetUpPromises) {
  for (const bool exclusive : {true, false}) {
    RedisBench bench(exclusive);
    auto& program = bench.program("a");
    program.acquire(kLock);
    bench.run(milliseconds(100));
    const auto guarantee = program.store->backend().capabilities().guarantee;
    EXPECT_EQ(guarantee == Guarantee::exclusive, exclusive);
  }
}

TEST(SimulatedRedis, AnUncontendedAcquireIsOneRoundTrip) {
  RedisBench bench(true);
  auto& program = bench.connected("a");
  const auto before = bench.store.primary().commands_served();
  const auto start = bench.world.now();
  const auto again = program.acquire(kLock);
  bench.run(milliseconds(100));
  ASSERT_TRUE(again->held());
  EXPECT_EQ(bench.store.primary().commands_served() - before, 1U);
  EXPECT_LT(again->at - start, milliseconds(50));
}

TEST(SimulatedRedis, AHandOverWakesOneWaiter) {
  RedisBench bench(true);
  auto& holder = bench.holder();
  const auto first = bench.program("first").acquire(kLock);
  bench.run(milliseconds(300));
  const auto second = bench.program("second").acquire(kLock);
  bench.run(milliseconds(300));
  const auto start = bench.world.now();
  holder.release();
  bench.run(milliseconds(100));
  ASSERT_TRUE(first->held());
  EXPECT_FALSE(second->told);
  EXPECT_LT(first->at - start, milliseconds(50));
}

// Everybody has the lock before his first look is due: nobody but newcomers sees to the queue.
TEST(SimulatedRedis, AQueueLastsAsLongAsThereAreNewcomers) {
  RedisBench bench(true);
  std::deque<Program*> line{&bench.holder(), &bench.program("a"), &bench.program("b"),
                            &bench.program("c")};
  for (std::size_t i = 1; i < line.size(); ++i) {
    line[i]->acquire(kLock);
    bench.run(milliseconds(50));
  }
  for (int turn = 0; turn < 600; ++turn) {
    auto* const program = line.front();
    line.pop_front();
    program->release();
    ASSERT_TRUE(bench.run_until([&] { return line.front()->last->held(); }, milliseconds(50)))
        << turn;
    program->acquire(kLock);
    line.push_back(program);
    bench.run(milliseconds(100));
  }
}

// Above 2^53 Lua counts no longer by one.
TEST(SimulatedRedis, AClockFarAheadGivesNoToken) {
  RedisBench bench(true);
  auto& program = bench.connected("a");
  bench.store.primary().set_clock_offset(std::chrono::hours(24 * 365 * 300));
  const auto attempt = program.acquire(kLock, milliseconds(0));
  bench.run(seconds(4));
  EXPECT_FALSE(attempt->held());
  EXPECT_NE(attempt->ec.message().find("2^53"), std::string::npos) << attempt->ec.message();
}

TEST(SimulatedRedis, ALostReplyIsAdopted) {
  for (const auto fault : {Fault::reply_lost, Fault::reset_after}) {
    RedisBench bench(true);
    auto& program = bench.connected("a");
    bench.network.arm(program.process, fault, [] {});
    const auto attempt = program.acquire(kLock);
    bench.run(seconds(4));
    EXPECT_TRUE(attempt->held()) << to_string(fault);
    EXPECT_TRUE(bench.forgotten.empty());
  }
}

TEST(SimulatedRedis, ARestartWithItsDataKeepsTheLock) {
  RedisBench bench(true, 1);  // with this seed it is up again before the lease is over
  auto& program = bench.program("a");
  const auto attempt = program.acquire(kLock);
  bench.run(seconds(1));
  ASSERT_TRUE(bench.store.strike(Fault::server_restarted, program.process, "orders/42"));
  bench.run(milliseconds(2500));
  ASSERT_TRUE(bench.store.is_up());
  bench.run(seconds(10));
  EXPECT_TRUE(attempt->held());
  EXPECT_TRUE(bench.forgotten.empty());
  // It was renewed since: what goes now does not go with the restart.
  ASSERT_TRUE(bench.store.strike(Fault::deleted, program.process, kLock));
  ASSERT_TRUE(bench.run_until([&] { return attempt->lost(); }, bench.store.longest_lease()));
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::removed);
}

TEST(SimulatedRedis, AFailoverThatLosesTheLockIsTold) {
  RedisBench bench(false);
  auto& program = bench.program("a");
  program.acquire(kLock);
  bench.run(seconds(3));
  program.release();
  bench.run(milliseconds(500));
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(50));
  ASSERT_TRUE(attempt->held());
  bench.store.next_lag = milliseconds(300);
  bench.store.next_hidden = false;
  ASSERT_TRUE(bench.store.strike(Fault::failover, program.process, "orders/42"));
  ASSERT_EQ(bench.forgotten.size(), 1U);
  EXPECT_EQ(bench.forgotten.front(), (std::pair<std::string, Fault>{"orders/42", Fault::failover}));
  bench.run(seconds(3));
  ASSERT_TRUE(attempt->lost());
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::failover);
}

TEST(SimulatedRedis, ADeletedLockIsToldAtTheNextRenewal) {
  RedisBench bench(true);
  auto& program = bench.program("a");
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(100));
  ASSERT_TRUE(bench.store.strike(Fault::deleted, program.process, "orders/42"));
  EXPECT_EQ(bench.forgotten.size(), 1U);
  bench.run(milliseconds(1000));
  ASSERT_TRUE(attempt->lost());
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::removed);
}

// It began to wait before the server was restarted, and was granted after it: what has gone since
// did not go with the restart.
TEST(SimulatedRedis, ALockGrantedAfterARestartIsNotToldAsLostByIt) {
  RedisBench bench(true, 2);  // up again before the lease is over
  auto& a = bench.program("a");
  const auto before = a.acquire(kLock);
  ASSERT_TRUE(bench.granted(before));
  auto& b = bench.program("b");
  const auto attempt = b.acquire(kLock);
  bench.run(seconds(1));
  ASSERT_TRUE(bench.store.strike(Fault::server_restarted, a.process, kLock));
  bench.run(milliseconds(2500));
  ASSERT_TRUE(bench.store.is_up());
  bench.run(seconds(10));
  ASSERT_FALSE(attempt->told);
  a.release(before);
  ASSERT_TRUE(bench.granted(attempt));
  bench.run(milliseconds(10));
  ASSERT_TRUE(bench.store.strike(Fault::deleted, b.process, kLock));
  ASSERT_TRUE(bench.run_until([&] { return attempt->lost(); }, bench.store.longest_lease()));
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::removed);
}

// What the operator removed is remembered until its holder has asked.
TEST(SimulatedRedis, ABrokenLockIsToldAsBrokenAtTheNextRenewal) {
  RedisBench bench(true);
  auto& program = bench.connected("a");
  auto& desk = bench.connected("operator");
  const auto attempt = program.acquire(kLock);
  ASSERT_TRUE(bench.granted(attempt));
  bench.run(milliseconds(50));
  std::optional<Failure> broken;
  desk.process.deliver([&] {
    EvictRequest request{kLock, attempt->handle.token().value_or(0)};
    request.at_once = true;
    asio::co_spawn(desk.process.executor(),
                   desk.store->backend().evict(request, desk.process.now() + seconds(5)),
                   [&](const std::exception_ptr& error, EvictAnswer answer) {
                     if (error) std::rethrow_exception(error);
                     broken = std::move(answer.failure);
                   });
  });
  ASSERT_TRUE(bench.run_until([&] { return broken.has_value(); }, seconds(5)));
  ASSERT_FALSE(broken->error) << broken->text;
  ASSERT_FALSE(attempt->lost_at);
  ASSERT_TRUE(bench.run_until([&] { return attempt->lost(); }, bench.store.longest_lease()));
  EXPECT_GT(*attempt->lost_at - attempt->at, milliseconds(200)) << "at the renewal, later";
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::broken);
}

// The client kills its old connection before it sends anything else: the late copy never arrives.
TEST(SimulatedRedis, ALateAcquireAfterAWithdrawalLeavesNothing) {
  RedisBench bench(true);
  auto& program = bench.connected("a");
  bench.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire(kLock);
  bench.run(milliseconds(1));
  ASSERT_FALSE(attempt->told);
  program.cancel(*attempt);
  bench.run(seconds(4));
  const auto left = bench.store.belongings();
  EXPECT_FALSE(left.keys.contains("dlock:{orders/42}"));
}

TEST(SimulatedRedis, NothingIsLeftOfACrashedWaiter) {
  RedisBench bench(true);
  auto& holder = bench.program("holder");
  const auto held = holder.acquire(kLock);
  bench.run(milliseconds(100));
  auto& waiter = bench.program("waiter");
  waiter.acquire(kLock);
  bench.run(seconds(1));
  EXPECT_EQ(bench.store.belongings().watches.size(), 1U);
  waiter.process.crash();
  bench.store.on_crash(waiter.process);
  bench.run(milliseconds(100));
  EXPECT_TRUE(bench.store.belongings().watches.empty());
  holder.release();
  bench.run(bench.store.longest_lease());
  for (const auto& key : bench.store.belongings().keys) {
    EXPECT_TRUE(bench.store.is_permitted(key)) << key;
  }
}

TEST(SimulatedRedis, TheSameSeedGivesTheSameRun) {
  const auto trace = [](std::uint64_t seed) {
    RedisBench bench(false, seed);
    auto& first = bench.program("first");
    auto& second = bench.program("second");
    first.acquire(kLock);
    bench.run(milliseconds(500));
    second.acquire(kLock);
    bench.store.strike(Fault::failover, first.process, "orders/42");
    bench.run(seconds(1));
    first.release();
    bench.run(seconds(5));
    return bench.world.trace_text();
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

}  // namespace
}  // namespace dlock::simulation::redis
