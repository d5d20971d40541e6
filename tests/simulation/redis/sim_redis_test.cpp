// SPDX-License-Identifier: Apache-2.0
//
// The production backend over the simulated Redis: what one holder and one waiter meet.
#include "tests/simulation/redis/sim_redis.hpp"

#include <gtest/gtest.h>

#include "tests/simulation/redis/fixture.hpp"

namespace dlock::simulation::redis {
namespace {

TEST(SimulatedRedis, DeclaresWhatItsSetUpPromises) {
  for (const bool exclusive : {true, false}) {
    Stage stage(exclusive);
    auto& program = stage.program("a");
    program.acquire();
    stage.pass(milliseconds(100));
    const auto guarantee = program.store->backend().capabilities().guarantee;
    EXPECT_EQ(guarantee == Guarantee::exclusive, exclusive);
  }
}

TEST(SimulatedRedis, AnUncontendedAcquireIsOneRoundTrip) {
  Stage stage(true);
  auto& program = stage.program("a");
  program.acquire();
  stage.pass(seconds(1));
  program.release();
  stage.pass(seconds(1));
  const auto before = stage.redis.primary().commands_served();
  const auto start = stage.world.now();
  const auto again = program.acquire();
  stage.pass(milliseconds(100));
  ASSERT_TRUE(again->held());
  EXPECT_EQ(stage.redis.primary().commands_served() - before, 1U);
  EXPECT_LT(again->at - start, milliseconds(50));
}

TEST(SimulatedRedis, AHandOverWakesOneWaiter) {
  Stage stage(true);
  auto& holder = stage.program("holder");
  holder.acquire();
  stage.pass(milliseconds(100));
  const auto first = stage.program("first").acquire();
  stage.pass(milliseconds(300));
  const auto second = stage.program("second").acquire();
  stage.pass(milliseconds(300));
  const auto start = stage.world.now();
  holder.release();
  stage.pass(milliseconds(100));
  ASSERT_TRUE(first->held());
  EXPECT_FALSE(second->told);
  EXPECT_LT(first->at - start, milliseconds(50));
}

TEST(SimulatedRedis, ALostReplyIsAdopted) {
  for (const auto fault : {Fault::reply_lost, Fault::reset_after}) {
    Stage stage(true);
    auto& program = stage.program("a");
    program.acquire();
    stage.pass(seconds(1));
    program.release();
    stage.pass(seconds(1));
    stage.network.arm(program.process, fault, [] {});
    const auto attempt = program.acquire();
    stage.pass(seconds(4));
    EXPECT_TRUE(attempt->held()) << to_string(fault);
    EXPECT_TRUE(stage.forgotten.empty());
  }
}

TEST(SimulatedRedis, ARestartWithItsDataKeepsTheLock) {
  Stage stage(true);
  auto& program = stage.program("a");
  const auto attempt = program.acquire();
  stage.pass(seconds(1));
  ASSERT_TRUE(stage.redis.strike(Fault::server_restarted, program.process, "orders/42"));
  stage.pass(milliseconds(2500));
  ASSERT_TRUE(stage.redis.is_up());
  stage.pass(seconds(10));
  EXPECT_TRUE(attempt->held());
  EXPECT_TRUE(stage.forgotten.empty());
}

TEST(SimulatedRedis, AFailoverThatLosesTheLockIsTold) {
  Stage stage(false);
  auto& program = stage.program("a");
  program.acquire();
  stage.pass(seconds(3));
  program.release();
  stage.pass(milliseconds(500));
  const auto attempt = program.acquire();
  stage.pass(milliseconds(50));
  ASSERT_TRUE(attempt->held());
  stage.redis.next_lag = milliseconds(300);
  ASSERT_TRUE(stage.redis.strike(Fault::failover, program.process, "orders/42"));
  ASSERT_EQ(stage.forgotten.size(), 1U);
  EXPECT_EQ(stage.forgotten.front(), (std::pair<std::string, Fault>{"orders/42", Fault::failover}));
  stage.pass(seconds(3));
  ASSERT_TRUE(attempt->lost());
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::failover);
}

TEST(SimulatedRedis, ADeletedLockIsToldAtTheNextRenewal) {
  Stage stage(true);
  auto& program = stage.program("a");
  const auto attempt = program.acquire();
  stage.pass(milliseconds(100));
  ASSERT_TRUE(stage.redis.strike(Fault::deleted, program.process, "orders/42"));
  EXPECT_EQ(stage.forgotten.size(), 1U);
  stage.pass(milliseconds(1000));
  ASSERT_TRUE(attempt->lost());
  EXPECT_EQ(attempt->handle.loss_reason(), LossReason::removed);
}

// The client kills its old connection before it sends anything else: the late copy never arrives.
TEST(SimulatedRedis, ALateAcquireAfterAWithdrawalLeavesNothing) {
  Stage stage(true);
  auto& program = stage.program("a");
  program.acquire();
  stage.pass(seconds(1));
  program.release();
  stage.pass(seconds(1));
  stage.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire();
  stage.pass(milliseconds(1));
  ASSERT_FALSE(attempt->told);
  program.cancel(*attempt);
  stage.pass(seconds(4));
  const auto left = stage.redis.belongings();
  EXPECT_FALSE(left.keys.contains("dlock:{orders/42}"));
}

TEST(SimulatedRedis, NothingIsLeftOfACrashedWaiter) {
  Stage stage(true);
  auto& holder = stage.program("holder");
  const auto held = holder.acquire();
  stage.pass(milliseconds(100));
  auto& waiter = stage.program("waiter");
  waiter.acquire();
  stage.pass(seconds(1));
  EXPECT_EQ(stage.redis.belongings().watches.size(), 1U);
  waiter.process.crash();
  stage.redis.on_crash(waiter.process);
  stage.pass(milliseconds(100));
  EXPECT_TRUE(stage.redis.belongings().watches.empty());
  holder.release();
  stage.pass(stage.redis.longest_lease());
  for (const auto& key : stage.redis.belongings().keys) {
    EXPECT_TRUE(stage.redis.is_permitted(key)) << key;
  }
}

TEST(SimulatedRedis, TheSameSeedGivesTheSameRun) {
  const auto trace = [](std::uint64_t seed) {
    Stage stage(false, seed);
    auto& first = stage.program("first");
    auto& second = stage.program("second");
    first.acquire();
    stage.pass(milliseconds(500));
    second.acquire();
    stage.redis.strike(Fault::failover, first.process, "orders/42");
    stage.pass(seconds(1));
    first.release();
    stage.pass(seconds(5));
    return stage.world.trace_text();
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

}  // namespace
}  // namespace dlock::simulation::redis
