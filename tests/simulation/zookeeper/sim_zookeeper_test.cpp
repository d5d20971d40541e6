// SPDX-License-Identifier: Apache-2.0
//
// The production backend over the simulated ensemble.
#include <gtest/gtest.h>

#include "tests/simulation/zookeeper/bench.hpp"

namespace dlock::simulation {
namespace {

TEST(SimZooKeeper, AnUncontendedAcquireIsOneRoundTrip) {
  Bench bench;
  auto& program = bench.program("a");
  auto first = program.acquire("orders/42");
  ASSERT_TRUE(bench.granted(first)) << first->ec.message() << bench.world.trace_text();
  program.release(first);
  bench.run(seconds(1));
  const auto before = bench.zookeeper.client_of(program.process).round_trips();
  auto again = program.acquire("orders/42");
  ASSERT_TRUE(bench.granted(again));
  EXPECT_EQ(bench.zookeeper.client_of(program.process).round_trips() - before, 1U);
}

}  // namespace
}  // namespace dlock::simulation
