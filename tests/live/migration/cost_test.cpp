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
#include <functional>
#include <vector>

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
  std::uint64_t gate = 0;

  auto operator<=>(const Cost&) const = default;
};

class MigrationCost : public testing::Test {
 protected:
  void SetUp() override {
    zookeeper_.start();
    redis_.start();
    to_zookeeper_.emplace(zookeeper_.port(), frames_.filter());
    to_redis_.emplace(redis_.port());
  }

  /// A third store, whose requests are counted apart from those of the other two.
  void start_gate() {
    gate_.start();
    to_gate_.emplace(gate_.port());
  }
  std::uint64_t gate_requests() const {
    return to_gate_ ? to_gate_->stats().to_server.segments : 0;
  }

  std::string config(const std::string& name, const std::string& route, bool by_proxy) {
    const auto zookeeper = by_proxy ? to_zookeeper_->port() : zookeeper_.port();
    const auto redis = by_proxy ? to_redis_->port() : redis_.port();
    const auto file = folder_ / (name + ".yaml");
    std::string gate;
    if (to_gate_) {
      gate = fmt::format("  gate: \"redis://127.0.0.1:{}/0?lease=10s\"\n",
                         by_proxy ? to_gate_->port() : gate_.port());
    }
    write_file(file, fmt::format("stores:\n  zk: \"zookeeper://127.0.0.1:{}/app?session_timeout=10s"
                                 "\"\n  redis: \"redis://127.0.0.1:{}/0?lease=10s\"\n{}"
                                 "locks:\n  - {{ match: \"**\", {} }}\n",
                                 zookeeper, redis, gate, route));
    return file.string();
  }
  void migrate(const std::string& file, std::vector<std::string> arguments) {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", file, "migrate"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const auto finished = run(std::move(options));
    ASSERT_TRUE(finished.status.success()) << finished.out << finished.err;
  }

  /// A command that may have to wait for another one.
  void turn(const std::string& file, std::vector<std::string> arguments) {
    constexpr int kWaits = 3;
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", file, "migrate"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const auto finished = run(std::move(options));
    const bool is_good = finished.status.success() || finished.status.shell_status() == kWaits;
    ASSERT_TRUE(is_good) << finished.out << finished.err;
  }

  void hold_answers_back(std::chrono::milliseconds by) {
    to_zookeeper_->delay(Direction::to_client, by);
    to_redis_->delay(Direction::to_client, by);
    if (to_gate_) to_gate_->delay(Direction::to_client, by);
  }
  /// Warm: the program has had the lock before; `made`: another one that nobody has had.
  Cost cost_of(const std::string& file, const std::string& store, bool made = false) {
    auto locks = LockManager::from_file(file);
    Cost least{.round_trips = 1000};
    for (int i = 0; i < 2; ++i) locks.lock("orders/42")->acquire().release();
    // What is asked beside an acquire, and nobody waits for, has had its answer.
    (void)locks.status("orders/42");
    for (int i = 0; i < kTries; ++i) {
      auto lock = locks.lock(made ? fmt::format("orders/made-{}", ++made_) : "orders/42");
      hold_answers_back(kAway);
      frames_.clear();
      const auto asked = to_redis_->stats().to_server.segments;
      const auto asked_gate = gate_requests();
      const auto begun = Clock::now();
      auto held = lock->acquire();
      const auto took = Clock::now() - begun;
      EXPECT_EQ(held.store(), store);
      Cost cost;
      cost.round_trips = static_cast<int>(took / kAway);
      cost.zookeeper = frames_.requests();
      cost.redis = to_redis_->stats().to_server.segments - asked;
      cost.gate = gate_requests() - asked_gate;
      least = std::min(least, cost);
      hold_answers_back(0ms);
      held.release();
    }
    return least;
  }
  static void expect_same(const Cost& cost, const Cost& plain, const std::string& what) {
    EXPECT_EQ(cost.round_trips, plain.round_trips) << what;
    EXPECT_EQ(cost.zookeeper, plain.zookeeper) << what;
    EXPECT_EQ(cost.redis, plain.redis) << what;
    EXPECT_EQ(cost.gate, 0U) << what;
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

  TempDir folder_{"dlock-cost"};
  ZooKeeperServer zookeeper_;
  RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> to_zookeeper_;
  std::optional<FaultProxy> to_redis_;
  RedisServer gate_{{"--appendonly", "yes", "--appendfsync", "always"}};
  std::optional<FaultProxy> to_gate_;
  int made_ = 0;
};

TEST_F(MigrationCost, ZooKeeperToRedisIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("zk", "redis", 1);
}

TEST_F(MigrationCost, RedisToZooKeeperIsTwoRoundTripsMoreUntilItIsFinished) {
  measure("redis", "zk", 0);
}

TEST_F(MigrationCost, WithAGateAnAcquireCostsOnlyTheRequestsOfItsStores) {
  start_gate();
  const auto route = std::string("migrate: { from: redis, to: zk, plan: p, gate: gate }");
  const auto operators = config("operators", route, false);
  const auto moving = config("moving", route, true);
  const auto home = config("home", "store: zk", true);
  const auto note = [&](const std::string& state, const std::string& file,
                        const std::string& store) {
    const auto cost = cost_of(file, store);
    fmt::print(
        "redis -> zk with a gate, {}: {} round trips; {} requests to ZooKeeper, {} to Redis, {} to "
        "the gate\n",
        state, cost.round_trips, cost.zookeeper, cost.redis, cost.gate);
    return cost;
  };
  const auto source = note("source alone", config("source", "store: redis", true), "redis");
  const auto target = note("target alone", home, "zk");
  const Cost both{source.round_trips + target.round_trips, source.zookeeper + target.zookeeper,
                  source.redis + target.redis};
  migrate(operators, {"start", "p", "--gate-lease", "3s"});
  expect_same(note("S_ALONE", moving, "redis"), source, "S_ALONE");
  turn(operators, {"advance", "p"});
  expect_same(note("S_THEN_T", moving, "redis"), both, "S_THEN_T");
  turn(operators, {"advance", "p", "--legacy-gone"});
  expect_same(note("T_ALONE", moving, "zk"), target, "T_ALONE");
  turn(operators, {"rollback", "p", "--wait", "0"});
  expect_same(note("T_THEN_S", moving, "zk"), both, "T_THEN_S");
  turn(operators, {"advance", "p"});
  migrate(operators, {"finish", "p"});
  expect_same(note("FINAL", moving, "zk"), target, "FINAL");
  expect_same(note("after it", home, "zk"), target, "after finish");
}

TEST_F(MigrationCost, WithAGateAProgramReadsItOncePerThirdOfALeaseAndNeverAfterFinish) {
  start_gate();
  const auto route = std::string("migrate: { from: redis, to: zk, plan: p, gate: gate }");
  const auto operators = config("operators", route, false);
  constexpr auto kThird = 500ms;
  constexpr int kReads = 5;
  migrate(operators, {"start", "p", "--gate-lease", "1500ms"});
  auto locks = LockManager::from_file(config("moving", route, true));
  std::vector<LockHandle> held;
  for (int i = 0; i < 3; ++i) held.push_back(locks.lock(fmt::format("held-{}", i))->acquire());
  int acquires = 0;
  const auto acquire_until = [&](const std::function<bool()>& is_done) {
    const auto latest = patience();
    while (!is_done() && Clock::now() < latest) {
      locks.lock("orders/42")->acquire().release();
      ++acquires;
    }
    EXPECT_TRUE(is_done());
  };
  const auto expect_reads = [&](const std::string& state) {
    const auto before = gate_requests();
    const auto begin = Clock::now();
    acquire_until([&] { return gate_requests() >= before + kReads; });
    const auto took = Clock::now() - begin;
    const auto reads = static_cast<int>(gate_requests() - before);
    EXPECT_GE(took, (reads - 1) * kThird - 20ms) << state << ": " << reads << " reads";
    EXPECT_LE(took, (reads + 1) * kThird + 3 * kThird) << state << ": " << reads << " reads";
    fmt::print("{}: {} reads of the gate in {} ms\n", state, reads,
               std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  };
  expect_reads("S_ALONE");
  turn(operators, {"advance", "p"});
  expect_reads("S_THEN_T");
  turn(operators, {"advance", "p", "--legacy-gone"});
  expect_reads("T_ALONE");
  const auto before = gate_requests();
  migrate(operators, {"finish", "p"});
  acquire_until([&] { return gate_requests() > before; });
  // That reading was of FINAL, or the one before it.
  const auto settled = Clock::now() + 2 * kThird;
  acquire_until([&] { return Clock::now() > settled; });
  const auto last = gate_requests();
  const auto end = Clock::now() + 3 * kThird;
  acquire_until([&] { return Clock::now() > end; });
  EXPECT_EQ(gate_requests(), last) << "after finish";
  EXPECT_GT(acquires, 100);
  for (auto& one : held) EXPECT_EQ(one.state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::testkit
