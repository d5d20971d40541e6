// SPDX-License-Identifier: Apache-2.0
//
// Each planted defect changes what happens: a scenario that goes wrong with it, and never without.
// But for zk_adopt_dying_session: the servers never show a new session what an old one has left, so
// the check it removes is a second one.
#include "tests/simulation/zookeeper/defects.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/planted.hpp"
#include "tests/simulation/zookeeper/bench.hpp"

namespace dlock::simulation {
namespace {

constexpr auto kLock = "orders/42";

/// Whether this seed's run goes wrong.
using Scenario = bool (*)(std::uint64_t seed);

struct Planted {
  explicit Planted(std::string_view defect) { core::planted_defect = defect; }
  ~Planted() { core::planted_defect = {}; }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

ensemble::Settings settings_of(std::uint64_t seed) {
  return {.tick = milliseconds(seed % 2 == 0 ? 1000 : 750), .sync_limit = 10};
}

/// Something holds the holder's packets or its replies back, or it stands still; then a cut.
bool told_too_late(std::uint64_t seed) {
  Bench bench(seed, settings_of(seed));
  auto& world = bench.world;
  auto& servers = bench.zookeeper.servers();
  const bool on_leader = world.chance(0.3);
  const int server = (servers.leader() + (on_leader ? 0 : 1)) % ensemble::Ensemble::kServers;
  const auto fault = [&](Program& a) {
    const auto session = bench.zookeeper.session_of(a.process);
    const auto how = world.below(4);
    if (how == 0) {
      a.process.pause();
      bench.run(world.between(milliseconds(100), milliseconds(1900)));
    } else if (how < 3) {
      bench.network.arm(a.process, how == 1 ? Fault::request_late : Fault::reply_late, [] {});
      bench.run(world.between(milliseconds(500), milliseconds(2500)));
    }
    if (on_leader || world.chance(0.3)) {
      servers.cut(server, seconds(60));
      if (on_leader) servers.leave_leader(server);
    } else {
      servers.cut_after_write(session, seconds(60));
    }
    a.process.resume();
  };
  const auto before = told_before(bench, server, kLock, fault);
  return before && *before <= Duration{};
}

bool granted_behind_a_waiter(std::uint64_t seed) {
  Bench bench(seed);
  auto held = bench.program("a").acquire(kLock);
  if (!bench.granted(held)) return false;
  auto gives_up = bench.program("b").acquire(kLock, milliseconds(2000));
  bench.run(seconds(1));
  auto waits = bench.program("c").acquire(kLock);
  bench.run(seconds(5));
  return gives_up->told && waits->told && !waits->ec;
}

bool token_falls(std::uint64_t seed) {
  Bench bench(seed);
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    // Each time another one: who knows a higher token takes no lower one.
    auto& a = bench.program(std::string(1, static_cast<char>('a' + i)));
    auto held = a.acquire(kLock);
    if (!bench.granted(held)) return false;
    const auto token = *held->handle.token();
    if (token <= last) return true;
    last = token;
    a.release(held);
    bench.run(i == 0 ? seconds(1) : seconds(12));
  }
  return false;
}

/// After `trouble` with a's release, or whatever it did: does the next one get the lock?
bool stuck_after(Bench& bench, const std::function<void(Program&)>& trouble) {
  auto& a = bench.program("a");
  auto warm = a.acquire(kLock);
  if (!bench.granted(warm)) return false;
  a.release(warm);
  bench.run(seconds(1));
  trouble(a);
  bench.run(seconds(12));
  auto next = bench.program("z").acquire(kLock);
  return !bench.granted(next, seconds(20));
}

bool stuck_after_hand_over(std::uint64_t seed) {
  Bench bench(seed);
  auto& a = bench.program("a");
  auto& b = bench.program("b");
  auto held = a.acquire(kLock);
  auto warm = b.acquire("other");
  if (!bench.granted(held) || !bench.granted(warm)) return false;
  auto waits = b.acquire(kLock);
  bench.run(bench.world.between({}, milliseconds(3)));
  a.release(held);
  return !bench.granted(waits, seconds(20));
}

bool stuck_after_time_out(std::uint64_t seed) {
  Bench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = bench.program("b").acquire(kLock);
    bench.granted(held);
    auto gives_up = a.acquire(kLock, milliseconds(500));
    bench.run(seconds(3));
    held->handle = LockHandle();
  });
}

bool stuck_after_busy(std::uint64_t seed) {
  Bench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = bench.program("b").acquire(kLock);
    bench.granted(held);
    auto tries = a.acquire(kLock, milliseconds(0));
    bench.run(bench.world.between({}, milliseconds(3)));
    bench.network.arm(a.process, Fault::reset_before, [] {});
    bench.run(milliseconds(300));
    bench.network.disarm(a.process);
    held->handle = LockHandle();
  });
}

template <Fault fault>
bool stuck_after_release(std::uint64_t seed) {
  Bench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    auto held = a.acquire(kLock);
    bench.granted(held);
    bench.run(seconds(1));
    bench.network.arm(a.process, fault, [] {});
    a.release(held);
  });
}

template <Fault fault>
bool stuck_after_create(std::uint64_t seed) {
  Bench bench(seed);
  return stuck_after(bench, [&](Program& a) {
    bench.network.arm(a.process, fault, [] {});
    auto held = a.acquire(kLock);
    bench.granted(held);
    bench.run(seconds(8));  // longer than late copies are looked for
    a.release(held);
  });
}

bool two_nodes_after_lost_reply(std::uint64_t seed) {
  Bench bench(seed);
  auto& a = bench.program("a");
  auto warm = a.acquire(kLock);
  if (!bench.granted(warm)) return false;
  a.release(warm);
  bench.run(seconds(1));
  bench.network.arm(a.process, Fault::reset_after, [] {});
  auto held = a.acquire(kLock);
  return bench.run_until([&] { return bench.contenders(kLock) > 1; }, seconds(4));
}

bool stuck_after_session(std::uint64_t seed) {
  Bench bench(seed);
  auto& a = bench.program("a");
  auto& b = bench.program("b");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  auto waits = b.acquire(kLock);
  bench.run(seconds(1));
  b.process.pause();
  bench.run(seconds(10));
  b.process.resume();
  bench.run(seconds(5));
  a.release(held);
  return !bench.granted(waits, seconds(20));
}

bool two_holders_at_the_counters_end(std::uint64_t seed) {
  Bench bench(seed, {.near_end = 1});
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 4; ++i) bench.program(std::to_string(i));
  for (int round = 0; round < 6; ++round) {
    outcomes.clear();
    for (const auto& program : bench.programs) outcomes.push_back(program->acquire(kLock));
    for (std::size_t left = outcomes.size(); left > 0; --left) {
      bench.run_until(
          [&] {
            return std::any_of(outcomes.begin(), outcomes.end(), [](const auto& one) {
              return one->handle.state() == HandleState::held;
            });
          },
          seconds(20));
      bench.run(milliseconds(200));
      const auto holders = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& one) {
        return one->handle.state() == HandleState::held;
      });
      if (holders > 1) return true;
      for (const auto& one : outcomes) {
        if (one->handle.state() == HandleState::held) one->handle = LockHandle();
      }
    }
    bench.run(seconds(1));
  }
  return false;
}

bool loss_is_not_told(std::uint64_t seed) {
  Bench bench(seed);
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  bench.run(seconds(2));
  bench.zookeeper.strike(Fault::deleted, a.process, kLock);
  bench.run(seconds(5));
  return !held->lost_at;
}

bool watches_stay(std::uint64_t seed) {
  Bench bench(seed);
  auto& a = bench.program("a");
  auto held = a.acquire(kLock);
  if (!bench.granted(held)) return false;
  auto gives_up = bench.program("b").acquire(kLock, milliseconds(500));
  bench.run(seconds(3));
  return bench.zookeeper.belongings().watches.size() > 1;  // the holder's own
}

struct Case {
  std::string_view defect;
  Scenario scenario;
  std::uint64_t seeds;
};

class Defects : public testing::TestWithParam<Case> {};

TEST_P(Defects, ShowsAndNothingElseDoes) {
  const auto& [defect, scenario, seeds] = GetParam();
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds, 300); ++seed) {
    EXPECT_FALSE(scenario(seed)) << "without a defect, seed " << seed;
  }
  const Planted planted(defect);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (scenario(seed)) return RecordProperty("seed", static_cast<int>(seed));
  }
  FAIL() << "not found in " << seeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(
    ZooKeeper, Defects,
    testing::Values(Case{"zk_deadline_two_thirds_only", &told_too_late, 1000},
                    Case{"zk_deadline_full_timeout", &told_too_late, 1000},
                    Case{"zk_deadline_from_reply", &told_too_late, 1000},
                    Case{"zk_base_by_sending", &told_too_late, 3000},
                    Case{"zk_sync_as_heartbeat", &told_too_late, 1000},
                    Case{"zk_read_as_heartbeat", &told_too_late, 1000},
                    Case{"zk_trust_any_predecessor", &granted_behind_a_waiter, 3},
                    Case{"zk_token_is_sequence", &token_falls, 3},
                    Case{"zk_missed_wakeup", &stuck_after_hand_over, 300},
                    Case{"zk_cancelled_left_behind", &stuck_after_time_out, 3},
                    Case{"zk_busy_left_behind", &stuck_after_busy, 100},
                    Case{"zk_delete_not_retried", &stuck_after_release<Fault::reset_before>, 3},
                    Case{"zk_keep_duplicate", &stuck_after_create<Fault::duplicated>, 20},
                    Case{"zk_no_sync_after_lost_reply", &two_nodes_after_lost_reply, 5000},
                    Case{"zk_session_gone_not_told", &stuck_after_session, 3},
                    Case{"zk_order_by_suffix_at_counter_end", &two_holders_at_the_counters_end, 50},
                    Case{"zk_own_watch_ignored", &loss_is_not_told, 3},
                    Case{"zk_watch_leak", &watches_stay, 3}),
    [](const auto& one) { return std::string(one.param.defect); });

}  // namespace
}  // namespace dlock::simulation
