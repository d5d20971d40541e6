// SPDX-License-Identifier: Apache-2.0
//
// Everything at once, by chance: some programs, two locks, faults of every kind. Nobody gets a lock
// while somebody else may believe to have it, tokens rise, and in the end it can be had.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/simulation/zookeeper/bench.hpp"

namespace dlock::simulation {
namespace {

/// DLOCK_SEED and DLOCK_SEEDS: where to begin, and how many. DLOCK_TRACE: show what led to it.
std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Soak {
  explicit Soak(std::uint64_t seed)
      : bench(seed, {.tick = milliseconds(seed % 2 == 0 ? 1000 : 750),
                     .sync_limit = seed % 3 == 0 ? 5 : 10,
                     .near_end = seed % 5 == 0 ? 0.7 : 0}) {
    bench.zookeeper.on_forgotten = [this](const std::string& lock, const std::string&, Fault) {
      for (auto& one : open) {
        if (one.lock == lock) one.excused = true;
      }
    };
  }

  struct Open {
    std::string lock;
    std::shared_ptr<Outcome> outcome;
    TimePoint release_at{};
    bool granted = false;
    bool excused = false;
  };

  void acquire() {
    auto& program = *bench.programs[bench.world.below(bench.programs.size())];
    Open one;
    one.lock = bench.world.chance(0.7) ? "orders/42" : "orders";
    std::optional<milliseconds> wait;
    if (bench.world.chance(0.5)) wait = milliseconds(bench.world.below(4000));
    one.outcome = program.acquire(one.lock, wait);
    one.release_at = bench.world.now() + bench.world.between({}, seconds(12));
    open.push_back(std::move(one));
  }

  void look() {
    // Two may have had it, one after the other, since we last looked.
    std::sort(open.begin(), open.end(),
              [](const Open& a, const Open& b) { return a.outcome->at < b.outcome->at; });
    for (auto& one : open) {
      if (one.granted || !one.outcome->told || one.outcome->ec) continue;
      one.granted = true;
      const auto token = *one.outcome->handle.token();
      bench.world.trace("{} was granted with {:x}", one.lock, token);
      for (auto& other : open) {
        if (&other == &one || other.lock != one.lock || !other.granted) continue;
        if (one.excused || other.excused) continue;
        const auto state = other.outcome->handle.state();
        if (state == HandleState::held || state == HandleState::suspect) {
          complaint = fmt::format("two holders of {}", one.lock);
        }
      }
      if (token <= tokens[one.lock] && !one.excused) {
        complaint = fmt::format("token {:x} after {:x}", token, tokens[one.lock]);
      }
      tokens[one.lock] = std::max(tokens[one.lock], token);
    }
    std::erase_if(open, [&](Open& one) {
      if (!one.outcome->told) return false;
      if (one.outcome->ec) bench.world.trace("{}: {}", one.lock, one.outcome->ec.message());
      if (!one.outcome->ec && bench.world.now() < one.release_at) return false;
      one.outcome->handle = LockHandle();
      return true;
    });
  }

  void trouble() {
    auto& near = *bench.programs[bench.world.below(bench.programs.size())];
    const auto kinds = bench.zookeeper.faults();
    const auto fault = kinds[bench.world.below(kinds.size())];
    if (is_of_message(fault)) {
      bench.network.arm(near.process, fault, [] {});
    } else if (fault == Fault::client_paused && !near.process.is_paused()) {
      near.process.pause();
      bench.world.after(bench.world.between(milliseconds(100), seconds(5)),
                        [&near] { near.process.resume(); });
    } else if (fault == Fault::client_cut) {
      bench.network.cut(near.process);
      bench.world.after(bench.world.between(milliseconds(100), seconds(5)),
                        [this, &near] { bench.network.mend(near.process); });
    } else if (!is_of_process(fault)) {
      bench.zookeeper.strike(fault, near.process, "orders/42");
    }
  }

  std::string run() {
    for (const auto* name : {"a", "b", "c"}) bench.program(name);
    const auto end = bench.world.now() + seconds(60);
    while (bench.world.now() < end && complaint.empty()) {
      bench.run(bench.world.between(microseconds(100), milliseconds(20)));
      if (open.size() < 5 && bench.world.chance(0.05)) acquire();
      if (bench.world.chance(0.01)) trouble();
      look();
    }
    if (complaint.empty()) finish();
    return complaint;
  }

  void finish() {
    bench.zookeeper.heal();
    for (const auto& program : bench.programs) {
      bench.network.disarm(program->process);
      bench.network.mend(program->process);
      program->process.resume();
    }
    const auto end = bench.world.now() + 3 * bench.zookeeper.progress_bound();
    while (!open.empty() && bench.world.now() < end) {
      bench.run(milliseconds(5));
      look();
    }
    if (!complaint.empty()) return;
    for (const auto& key : bench.zookeeper.belongings().keys) bench.world.trace("left: {}", key);
    for (const auto& path : bench.zookeeper.servers().watches()) {
      bench.world.trace("watched: {}", path);
    }
    if (!open.empty()) complaint = "stuck: " + open.front().lock;
    auto last = bench.program("z").acquire("orders/42");
    if (complaint.empty() && !bench.granted(last, bench.zookeeper.progress_bound())) {
      complaint = "not to be had in the end";
    }
    if (!complaint.empty()) return;
    last->handle = LockHandle();
    bench.run(bench.zookeeper.longest_lease());
    const auto left = bench.zookeeper.belongings();
    for (const auto& key : left.keys) {
      if (!bench.zookeeper.is_permitted(key)) complaint = "left behind: " + key;
    }
    for (const auto& watch : left.watches) complaint = "still watched: " + watch;
  }

  Bench bench;
  std::vector<Open> open;
  std::map<std::string, std::uint64_t> tokens;
  std::string complaint;
};

TEST(SimZooKeeperSoak, NobodyIsHurtByChance) {
  const auto first = number_from("DLOCK_SEED", 1);
  const auto last = first + number_from("DLOCK_SEEDS", 60);
  for (auto seed = first; seed < last; ++seed) {
    Soak soak(seed);
    const auto complaint = soak.run();
    EXPECT_EQ(complaint, "") << "DLOCK_SEED=" << seed;
    const bool wanted = std::getenv("DLOCK_TRACE") != nullptr && !complaint.empty();
    if (wanted) std::puts(soak.bench.world.trace_text().c_str());
  }
}

}  // namespace
}  // namespace dlock::simulation
