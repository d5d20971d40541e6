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
/// The second look at the record.
constexpr int kLook = 1;

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
  /// Warm: the program has had the lock before; `made`: another one that nobody has had.
  Cost cost_of(const std::string& file, const std::string& store, bool made = false) {
    auto locks = LockManager::from_file(file);
    Cost least{1000, 0, 0};
    for (int i = 0; i < 2; ++i) locks.lock("orders/42")->acquire().release();
    // What is asked beside an acquire, and nobody waits for, has had its answer.
    (void)locks.status("orders/42");
    for (int i = 0; i < kTries; ++i) {
      auto lock = locks.lock(made ? fmt::format("orders/made-{}", ++made_) : "orders/42");
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
  static void expect_same(const Cost& cost, const Cost& plain, const std::string& what) {
    EXPECT_EQ(cost.round_trips, plain.round_trips) << what;
    EXPECT_EQ(cost.zookeeper, plain.zookeeper) << what;
    EXPECT_EQ(cost.redis, plain.redis) << what;
  }

  /// `seal`: round trips of it, of a name that is made while its plan goes on.
  void measure(const std::string& from, const std::string& to, int seal) {
    const auto route = fmt::format("migrate: {{ from: {}, to: {}, plan: p }}", from, to);
    const auto operators = config("operators", route, false);
    const auto moving = config("moving", route, true);
    const auto away = config("away", "store: " + from, true);
    const auto home = config("home", "store: " + to, true);
    std::vector<std::pair<std::string, Cost>> all;
    const auto note = [&](const std::string& what, const std::string& file,
                          const std::string& store, bool made = false) {
      all.emplace_back(what, cost_of(file, store, made));
      const auto& cost = all.back().second;
      fmt::print("{} -> {}, {}: {} round trips; {} requests to ZooKeeper, {} to Redis\n", from, to,
                 what, cost.round_trips, cost.zookeeper, cost.redis);
      return cost;
    };
    const auto source = note("plain in the source", away, from);
    const auto source_made = note("plain in the source, made", away, from, true);
    const auto target = note("plain in the target", home, to);
    const auto target_made = note("plain in the target, made", home, to, true);
    expect_same(note("with the route, no plan", moving, from), source, "no plan");
    migrate(operators, {"start", "p"});
    expect_same(note("governed", moving, from), source, "governed");
    expect_same(note("governed, made", moving, from, true), source_made, "governed, made");
    migrate(operators, {"advance", "p", "--all"});
    const auto moved = note("moved", moving, to);
    EXPECT_LE(moved.round_trips, source.round_trips + target.round_trips + kLook);
    const auto moved_made = note("moved, made", moving, to, true);
    EXPECT_LE(moved_made.round_trips,
              source_made.round_trips + seal + target_made.round_trips + kLook);
    migrate(operators, {"finish", "p", "--all"});
    expect_same(note("finished, with the route", moving, to), target, "finished");
    expect_same(note("finished, with the route, made", moving, to, true), target_made, "finished");
    expect_same(note("finished", home, to), target, "finished");
    expect_same(note("finished, made", home, to, true), target_made, "finished");
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
  int made_ = 0;
};

TEST_F(MigrationCost, ZooKeeperToRedisIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("zk", "redis", 1);
}

TEST_F(MigrationCost, RedisToZooKeeperIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("redis", "zk", 0);
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
