// SPDX-License-Identifier: Apache-2.0
//
// What it costs a program that a lock is being moved, on real servers: round trips one after
// another, and requests.
//
// Each store is reached through a proxy that holds every answer back for a while: so many times as
// that fits into an acquire, so often did it wait for a server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "dlock/lock_manager.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "testkit/zookeeper_frames.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

constexpr auto kAway = 100ms;
/// The quickest counts: what else the machine has to do only adds.
constexpr int kTries = 5;
constexpr int kMost = 2;

/// Of one uncontended acquire.
struct Cost {
  int round_trips = 0;
  std::uint64_t zookeeper = 0;  ///< requests, also those that nobody waits for
  std::uint64_t redis = 0;
};

class MigrationCost : public testing::Test {
 protected:
  void SetUp() override {
    zookeeper_.start();
    redis_.start();
    to_zookeeper_.emplace(zookeeper_.port(), frames_.filter());
    to_redis_.emplace(redis_.port());
  }

  std::string config(const std::string& name, const std::string& route, bool by_proxy) {
    const auto zookeeper = by_proxy ? to_zookeeper_->port() : zookeeper_.port();
    const auto redis = by_proxy ? to_redis_->port() : redis_.port();
    const auto file = folder_ / (name + ".yaml");
    write_file(file, fmt::format("stores:\n  zk: \"zookeeper://127.0.0.1:{}/app?session_timeout=10s"
                                 "\"\n  redis: \"redis://127.0.0.1:{}/0?lease=10s\"\n"
                                 "locks:\n  - {{ match: \"**\", {} }}\n",
                                 zookeeper, redis, route));
    return file.string();
  }
  void migrate(const std::string& file, std::vector<std::string> arguments) {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", file, "migrate"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const auto finished = run(std::move(options));
    ASSERT_TRUE(finished.status.success()) << finished.out << finished.err;
  }

  void hold_answers_back(std::chrono::milliseconds by) {
    to_zookeeper_->delay(Direction::to_client, by);
    to_redis_->delay(Direction::to_client, by);
  }
  /// Warm: it has had the lock before.
  Cost cost_of(const std::string& file, const std::string& store) {
    auto locks = LockManager::from_file(file);
    auto lock = locks.lock("orders/42");
    Cost least{1000, 0, 0};
    for (int i = 0; i < 2; ++i) lock->acquire().release();
    for (int i = 0; i < kTries; ++i) {
      hold_answers_back(kAway);
      frames_.clear();
      const auto asked = to_redis_->stats().to_server.segments;
      const auto begun = Clock::now();
      auto held = lock->acquire();
      const auto took = Clock::now() - begun;
      EXPECT_EQ(held.store(), store);
      Cost cost;
      cost.round_trips = static_cast<int>(took / kAway);
      cost.zookeeper = frames_.requests();
      cost.redis = to_redis_->stats().to_server.segments - asked;
      if (cost.round_trips < least.round_trips) least = cost;
      hold_answers_back(0ms);
      held.release();
    }
    return least;
  }

  void measure(const std::string& from, const std::string& to) {
    const auto what = from + " -> " + to;
    const auto route = fmt::format("migrate: {{ from: {}, to: {}, plan: p }}", from, to);
    const auto operators = config("operators", route, false);
    const auto moving = config("moving", route, true);
    const auto home = config("home", "store: " + to, true);
    const auto plain = cost_of(home, to);
    migrate(operators, {"start", "p", "orders/42"});
    migrate(operators, {"advance", "p", "--all"});
    const auto moved = cost_of(moving, to);
    migrate(operators, {"finish", "p", "--all"});
    const auto after = cost_of(home, to);
    for (const auto& [name, cost] : {std::pair("plain in the target", &plain),
                                     std::pair("moved", &moved), std::pair("finished", &after)}) {
      fmt::print("{}, {}: {} round trips; {} requests to ZooKeeper, {} to Redis\n", what, name,
                 cost->round_trips, cost->zookeeper, cost->redis);
    }
    EXPECT_LE(moved.round_trips, plain.round_trips + kMost) << what;
    EXPECT_EQ(after.round_trips, plain.round_trips) << what;
    EXPECT_EQ(after.zookeeper, plain.zookeeper) << what;
    EXPECT_EQ(after.redis, plain.redis) << what;
  }

  /// One step of the window; its programs have gone, and nobody needs to be waited for.
  void step(const std::string& operators, bool legacy_gone) {
    std::vector<std::string> arguments{"advance", "p", "--wait", "30s"};
    if (legacy_gone) arguments.emplace_back("--legacy-gone");
    migrate(operators, std::move(arguments));
  }

  TempDir folder_{"dlock-cost"};
  ZooKeeperServer zookeeper_;
  RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> to_zookeeper_;
  std::optional<FaultProxy> to_redis_;
};

TEST_F(MigrationCost, ZooKeeperToRedisIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("zk", "redis");
}

TEST_F(MigrationCost, RedisToZooKeeperIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("redis", "zk");
}

// The registration is renewed beside it, and nobody waits for that.
TEST_F(MigrationCost, InModeDualPhaseOneTakesBothStoresAndOneMore) {
  const auto route = [](int phase) {
    return fmt::format("migrate: {{ from: redis, to: zk, plan: p, mode: dual, phase: {} }}", phase);
  };
  const auto operators = config("operators", route(0), false);
  const auto source = cost_of(config("source", "store: redis", true), "redis");
  const auto target = cost_of(config("target", "store: zk", true), "zk");
  // Nobody has locked without the route for longer than that.
  migrate(operators, {"start", "p", "--max-lease", "1s"});
  const auto zero = cost_of(config("zero", route(0), true), "redis");
  step(operators, false);
  const auto one = cost_of(config("one", route(1), true), "zk");
  step(operators, false);
  step(operators, true);
  const auto two = cost_of(config("two", route(2), true), "zk");
  for (const auto& [name, cost] :
       {std::pair("source alone", &source), std::pair("target alone", &target),
        std::pair("phase 0", &zero), std::pair("phase 1", &one), std::pair("phase 2", &two)}) {
    fmt::print(
        "redis -> zk in mode dual, {}: {} round trips; {} requests to ZooKeeper, {} to "
        "Redis\n",
        name, cost->round_trips, cost->zookeeper, cost->redis);
  }
  EXPECT_EQ(zero.round_trips, source.round_trips);
  EXPECT_LE(one.round_trips, source.round_trips + target.round_trips + 1);
  EXPECT_EQ(two.round_trips, target.round_trips);
}

}  // namespace
}  // namespace dlock::testkit
