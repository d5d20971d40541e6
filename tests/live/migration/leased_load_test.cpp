// SPDX-License-Identifier: Apache-2.0
//
// Holds under a leased gate on real servers: through all turns under load, when the source forgets,
// and while the gate's store is away.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "tests/live/migration/board.hpp"
#include "tests/live/migration/leased_operator.hpp"

namespace dlock::fleet {
namespace {

using testkit::eventually;
using testkit::patience;

/// Programs that contend for a few names, until they are destroyed.
class Programs {
 public:
  Programs(const std::filesystem::path& config, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      managers_.push_back(open_quietly(config));
      auto& locks = managers_.back();
      threads_.emplace_back([this, i, &locks](const std::stop_token& stop) {
        Load load;
        load.program = i;
        work(locks, board_, load, stop);
      });
    }
  }
  ~Programs() {
    for (auto& thread : threads_) thread.request_stop();
  }
  /// Waits until each of them was granted locks, and returns the first complaint.
  std::string work_on() {
    constexpr std::uint64_t kGrants = 5;
    for (std::size_t i = 0; i < managers_.size(); ++i) {
      const auto before = board_.grants(i);
      const bool goes_on =
          eventually(patience(), [&] { return board_.grants(i) >= before + kGrants; });
      if (!goes_on) return fmt::format("program {} is granted nothing", i);
    }
    return board_.complaint();
  }

 private:
  testkit::TempDir folder_{"dlock-leased-load"};
  Board board_{folder_ / "board"};
  std::deque<LockManager> managers_;
  std::vector<std::jthread> threads_;
};

/// A program that acquires its own lock all the time. It measures the longest acquire, less the
/// time for which the machine ran no thread.
class Stalls {
 public:
  explicit Stalls(const std::filesystem::path& config) : locks_(open_quietly(config)) {
    beat_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
    prober_ = std::jthread([this](const std::stop_token& stop) { probe(stop); });
  }
  std::chrono::nanoseconds longest() const { return longest_; }

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  void beat(const std::stop_token& stop) {
    constexpr auto kBeat = 2ms;
    while (!stop.stop_requested()) {
      const auto due = testkit::Clock::now() + kBeat;
      std::this_thread::sleep_for(kBeat);
      const auto late = testkit::Clock::now() - due;
      if (late > kBeat) late_ = late_.load() + Nanoseconds(late);
    }
  }
  void probe(const std::stop_token& stop) {
    const auto lock = locks_.lock("billing/probe");
    while (!stop.stop_requested()) {
      const auto late = late_.load();
      const auto begin = testkit::Clock::now();
      error_code ec;
      auto held = lock->acquire({.wait = 60s}, stop, ec);
      const Nanoseconds took = testkit::Clock::now() - begin - (late_.load() - late);
      if (took > longest_.load()) longest_ = took;
      held.release();
      std::this_thread::sleep_for(3ms);
    }
  }

  LockManager locks_;
  std::atomic<Nanoseconds> late_{Nanoseconds(0)};
  std::atomic<Nanoseconds> longest_{Nanoseconds(0)};
  std::jthread beat_;
  std::jthread prober_;
};

struct StorePair {
  const char* name;
  const char* source;
  const char* target;
};

class LeasedUnderLoad : public testing::TestWithParam<StorePair> {};

TEST_P(LeasedUnderLoad, AHoldLastsThroughEveryTurn) {
  const LeasedStores stores(GetParam().source, GetParam().target);
  const LeasedOperator by(stores);
  by.start(2s);
  Programs programs(stores.route(), 4);
  const Stalls stalls(stores.route());
  auto holder = open_quietly(stores.route());
  auto rival = open_quietly(stores.route());
  std::vector<LockHandle> holds;
  const auto settle = [&](const std::string& state) {
    EXPECT_EQ(by.state(), state);
    EXPECT_EQ(programs.work_on(), "") << state;
    for (auto& hold : holds) {
      EXPECT_EQ(hold.state(), HandleState::held)
          << hold.name() << " in " << state << ": " << to_string(hold.loss_reason());
      EXPECT_EQ(refusal(rival, hold.name(), 0s), errc::timed_out) << state;
    }
    holds.push_back(acquire(holder, "billing/since-" + std::to_string(holds.size())));
  };
  settle("S_ALONE");
  by.both();
  settle("S_THEN_T");
  by.target_alone();
  settle("T_ALONE");
  by.turn({"rollback", "--wait", "0"}, "T_THEN_S");
  settle("T_THEN_S");
  by.turn({"rollback"}, "S_ALONE");
  settle("S_ALONE");
  by.both();
  settle("S_THEN_T");
  by.target_alone();
  settle("T_ALONE");
  by.turn({"finish"}, "FINAL");
  settle("FINAL");
  EXPECT_LT(stalls.longest(), 1s);
  auto home = open_quietly(stores.home());
  for (auto& hold : holds) {
    const auto name = hold.name();
    const auto token = hold.token().value_or(0);
    EXPECT_EQ(refusal(home, name, 0s), errc::timed_out);
    EXPECT_FALSE(hold.release()) << name;
    EXPECT_GT(acquire(home, name).token().value_or(0), token) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stores, LeasedUnderLoad,
    testing::Values(StorePair{"FromMemcachedToZooKeeper", "memcached", "zookeeper"},
                    StorePair{"FromMemcachedToDurableRedis", "memcached", "durable"},
                    StorePair{"FromRedisToZooKeeper", "redis", "zookeeper"},
                    StorePair{"FromRedisToDurableRedis", "redis", "durable"},
                    StorePair{"FromMemcachedToRedisWithAThirdStore", "memcached", "redis"}),
    [](const auto& one) { return std::string(one.param.name); });

class LeasedFlush : public testing::TestWithParam<std::string> {};

/// A program that knows the source alone. It loses its lock when the source forgets, after at least
/// as much time as others with the same lease.
class Witness {
 public:
  explicit Witness(const std::filesystem::path& config) : locks_(open_quietly(config)) {}
  void flush(LeasedStores& stores) {
    auto held = acquire(locks_, "witness");
    stores.wipe(false);
    const bool is_lost = eventually(patience(), [&] { return held.state() == HandleState::lost; });
    EXPECT_TRUE(is_lost);
  }

 private:
  LockManager locks_;
};

TEST_P(LeasedFlush, EndsOnlyHoldsWithALockInTheSource) {
  LeasedStores stores(GetParam(), "zookeeper");
  const LeasedOperator by(stores);
  by.start(1s);
  auto locks = open_quietly(stores.route());
  Witness witness(stores.legacy());
  const StoreView source(stores.url("cache"));
  const StoreView target(stores.url("home"));
  const auto expect_lost = [&](LockHandle held) {
    const auto name = held.name();
    const auto token = held.token().value_or(0);
    EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }))
        << name << " in " << by.state();
    EXPECT_EQ(held.loss_reason(), LossReason::removed) << name;
    held.release();
    EXPECT_GT(acquire(locks, name).token().value_or(0), token) << name;
  };
  const auto lost_in = [&](const std::string& name) {
    auto held = acquire(locks, name);
    EXPECT_TRUE(source.await(name, true));
    witness.flush(stores);
    expect_lost(std::move(held));
  };
  lost_in("billing/s-alone");
  by.both();
  auto moving = acquire(locks, "billing/moving");
  ASSERT_TRUE(target.await("billing/moving", true));
  lost_in("billing/s-then-t");
  expect_lost(std::move(moving));
  moving = acquire(locks, "billing/moving-again");
  by.target_alone();
  ASSERT_TRUE(source.await("billing/moving-again", false));
  witness.flush(stores);
  EXPECT_EQ(moving.state(), HandleState::held) << to_string(moving.loss_reason());

  by.turn({"rollback", "--wait", "0"}, "T_THEN_S");
  ASSERT_TRUE(source.await("billing/moving-again", true));
  lost_in("billing/t-then-s");
  expect_lost(std::move(moving));

  by.turn({"advance"}, "T_ALONE");
  auto home = acquire(locks, "billing/home");
  by.turn({"finish"}, "FINAL");
  witness.flush(stores);
  EXPECT_EQ(home.state(), HandleState::held) << to_string(home.loss_reason());
  stores.source().stop();
  EXPECT_EQ(acquire(locks, "billing/after").store(), "home");
  EXPECT_EQ(home.state(), HandleState::held) << to_string(home.loss_reason());
}

INSTANTIATE_TEST_SUITE_P(Sources, LeasedFlush, testing::Values("memcached", "redis"),
                         [](const auto& one) { return one.param; });

class LeasedGateAway : public testing::Test {
 protected:
  static constexpr auto kGateLease = 1000ms;

  /// Cuts the gate's store off for two gate leases. `meanwhile` gets the time of the cut.
  template <class Meanwhile>
  void cut(bool is_silent, const Meanwhile& meanwhile) {
    auto& link = stores_.gate_link();
    const auto begin = testkit::Clock::now();
    if (is_silent) {
      for (const auto way : {testkit::Direction::to_server, testkit::Direction::to_client}) {
        link.hold(way, true);
      }
    } else {
      link.refuse(true);
      link.drop_all();
    }
    meanwhile(begin);
    expect_nothing_granted(begin + kGateLease, begin + 2 * kGateLease);
    if (is_silent) {
      for (const auto way : {testkit::Direction::to_server, testkit::Direction::to_client}) {
        link.hold(way, false);
      }
    } else {
      link.refuse(false);
    }
    acquire(other_, "billing/recovered").release();
  }
  /// No reading counts after `from`.
  void expect_nothing_granted(testkit::Deadline from, testkit::Deadline to) {
    auto begin = testkit::Clock::now();
    for (; begin < to; begin = testkit::Clock::now()) {
      error_code ec;
      auto held = other_.lock("billing/free")->acquire({.wait = 100ms}, {}, ec);
      if (begin < from) continue;
      EXPECT_FALSE(held) << "in '" << held.store() << "'";
      EXPECT_EQ(ec, errc::unavailable) << ec.message();
    }
  }
  void expect_lost(LockHandle& held, testkit::Deadline cut) {
    EXPECT_LE(held.remaining().value_or(1h), kGateLease);
    ASSERT_TRUE(eventually(cut + kGateLease, [&] { return held.state() == HandleState::lost; }));
    EXPECT_EQ(held.loss_reason(), LossReason::gate_not_confirmed) << to_string(held.loss_reason());
    held.release();
  }

  LeasedStores stores_{"memcached", "redis"};
  LeasedOperator by_{stores_};
  LockManager holder_ = open_quietly(stores_.route());
  LockManager other_ = open_quietly(stores_.route());
};

TEST_F(LeasedGateAway, HoldsInOneStoreEndWithinALeaseAndHoldsInBothContinue) {
  by_.start(kGateLease);
  auto held = acquire(holder_, "billing/held");
  auto token = held.token().value_or(0);
  std::atomic<bool> was_suspect{false};
  held.on_state([&](HandleState state, LossReason) {
    if (state == HandleState::suspect) was_suspect = true;
  });
  cut(false, [&](testkit::Deadline begin) { expect_lost(held, begin); });
  EXPECT_TRUE(was_suspect) << "before it was lost";
  held = acquire(other_, "billing/held");
  EXPECT_GT(held.token().value_or(0), token);
  held.release();

  by_.both();
  held = acquire(holder_, "billing/held");
  ASSERT_TRUE(StoreView(stores_.url("home")).await("billing/held", true));
  ASSERT_TRUE(StoreView(stores_.url("cache")).await("billing/held", true));
  cut(true, [&](testkit::Deadline) {});
  EXPECT_EQ(held.state(), HandleState::held) << to_string(held.loss_reason());
  EXPECT_EQ(refusal(other_, "billing/held", 0s), errc::timed_out);
  token = held.token().value_or(0);
  held.release();

  by_.target_alone();
  held = acquire(holder_, "billing/held");
  EXPECT_EQ(held.store(), "home");
  EXPECT_GT(held.token().value_or(0), token);
  cut(true, [&](testkit::Deadline begin) { expect_lost(held, begin); });
  EXPECT_EQ(acquire(other_, "billing/held").store(), "home");
}

}  // namespace
}  // namespace dlock::fleet
