// SPDX-License-Identifier: Apache-2.0
//
// What the simulation stands on: time, processes and messages.
#include "tests/simulation/world.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <vector>

#include "dlock/spi/signal.hpp"
#include "tests/simulation/network.hpp"

namespace dlock::simulation {
namespace {

asio::awaitable<void> note_after(Process& process, Duration time, std::vector<TimePoint>& seen) {
  co_await sleep_until(process, process.now() + time);
  seen.push_back(process.world().now());
}

TEST(SimulatedTime, TheSameSeedGivesTheSameChance) {
  World first(7);
  World second(7);
  World third(8);
  EXPECT_EQ(first.random(), second.random());
  EXPECT_NE(first.random(), third.random());
}

TEST(SimulatedProcess, SleepsOnItsOwnClock) {
  World world(1);
  Process fast(world, "fast", {0.01, milliseconds(0)});
  std::vector<TimePoint> seen;
  const auto start = world.now();
  asio::co_spawn(fast.executor(), note_after(fast, seconds(101), seen), asio::detached);
  world.run_until(start + seconds(200));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_NEAR(std::chrono::duration<double>(seen[0] - start).count(), 100, 0.001);
}

TEST(SimulatedProcess, RunsNothingWhilePausedAndEverythingThen) {
  World world(1);
  Process process(world, "p", {});
  std::vector<TimePoint> seen;
  const auto start = world.now();
  asio::co_spawn(process.executor(), note_after(process, seconds(1), seen), asio::detached);
  world.run_until(start + milliseconds(500));
  process.pause();
  world.at(start + seconds(5), [&] { process.resume(); });
  world.run_until(start + seconds(10));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], start + seconds(5));
}

TEST(SimulatedNetwork, AnArmedFaultStrikesOnce) {
  World world(1);
  Network network(world);
  Process process(world, "p", {});
  int struck = 0;
  network.arm(process, Fault::reply_lost, [&] { ++struck; });
  EXPECT_EQ(network.fate(process).reply, Fate::Break::lost);
  EXPECT_EQ(network.fate(process).reply, Fate::Break::none);
  EXPECT_EQ(struck, 1);
}

TEST(SimulatedNetwork, ACrashedProcessIsCutOff) {
  World world(1);
  Network network(world);
  Process process(world, "p", {});
  EXPECT_FALSE(network.is_cut(process));
  process.crash();
  EXPECT_TRUE(network.is_cut(process));
}

}  // namespace
}  // namespace dlock::simulation
