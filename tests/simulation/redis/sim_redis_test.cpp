// SPDX-License-Identifier: Apache-2.0
//
// The production backend over the simulated Redis: what one holder and one waiter meet.
#include "tests/simulation/redis/sim_redis.hpp"

#include <gtest/gtest.h>

#include "tests/simulation/redis/fixture.hpp"

namespace dlock::simulation::redis {
namespace {

TEST(SimulatedRedis, AnUncontendedAcquireIsOneRoundTrip) {
  Stage run(true);
  auto& program = run.program("a");
  program.acquire();
  run.pass(seconds(1));
  program.release();
  run.pass(seconds(1));
  const auto before = run.redis.primary().commands_served();
  const auto start = run.world.now();
  const auto again = program.acquire();
  run.pass(milliseconds(100));
  ASSERT_TRUE(again->held());
  EXPECT_EQ(run.redis.primary().commands_served() - before, 1U);
  EXPECT_LT(again->at - start, milliseconds(50));
}

}  // namespace
}  // namespace dlock::simulation::redis
