// SPDX-License-Identifier: Apache-2.0
//
// Past 2^31 acquisitions of a lock all its nodes have the same number: they are told apart by when
// they were born, and one that is made anew has its old name.
#include "tests/simulation/zookeeper/counter_scenarios.hpp"

#include <algorithm>

#include "tests/simulation/zookeeper/bench.hpp"

namespace dlock::simulation {
namespace {

using ensemble::Operation;

constexpr auto kCounted = "orders/42";

bool two_holders_at_the_counters_end(std::uint64_t seed) {
  EnsembleBench bench(seed, {.near_end = 1});
  std::vector<AttemptPtr> outcomes;
  for (int i = 0; i < 4; ++i) bench.program(std::to_string(i));
  for (int round = 0; round < 6; ++round) {
    outcomes.clear();
    for (int i = 0; i < 4; ++i)
      outcomes.push_back(bench.program(std::to_string(i)).acquire(kCounted));
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

/// Its writer's number is an early one, and who waits has none any more.
bool passes_a_reader_that_was_a_writer(std::uint64_t seed) {
  EnsembleBench bench(seed);
  auto& a = bench.program("a");
  auto held = a.acquire(kCounted);
  if (!bench.granted(held)) return false;
  bench.use_up_numbers(kCounted);
  auto waits = bench.program("b").acquire(kCounted);
  bench.run(seconds(1));
  a.process.deliver(
      [held] { detail::GrantAccess::grant(held->handle)->downgrade([](error_code) {}); });
  bench.run(seconds(1));
  return held->held() && waits->held();
}

/// a holds; b, which waits, loses its place, and makes it anew behind c. Neither may wait for the
/// other for ever.
struct MadeAnew {
  explicit MadeAnew(std::uint64_t seed) : bench(seed) {
    held = a.acquire(kCounted);
    bench.granted(held);
    bench.warm_up(c, "orders/43");
    bench.use_up_numbers(kCounted);
    b.acquire(kCounted);
    bench.run(seconds(1));
  }
  void end_session_of_b() {
    const auto session = bench.store.session_of(b.process);
    bench.store.servers().submit({.kind = Operation::Kind::close_session, .session = session}, {});
  }
  bool is_stuck(const AttemptPtr& waits) {
    if (bench.contenders(kCounted) != 3) return false;
    a.release(held);
    return !bench.granted(waits, seconds(20));
  }

  EnsembleBench bench;
  Program& a = bench.program("a");
  Program& b = bench.program("b");
  Program& c = bench.program("c");
  AttemptPtr held;
};

bool stuck_after_a_cut(std::uint64_t seed) {
  MadeAnew all(seed);
  auto waits = all.c.acquire(kCounted);
  all.bench.run(seconds(1));
  all.bench.network.cut(all.c.process);
  all.bench.run(all.bench.world.between(seconds(1), milliseconds(1500)));
  all.end_session_of_b();
  all.bench.run(milliseconds(500));
  all.bench.network.mend(all.c.process);
  all.bench.run(seconds(1));
  return all.is_stuck(waits);
}

/// c has listed the first of b's nodes, and watches the second.
bool stuck_after_a_late_watch(std::uint64_t seed) {
  MadeAnew all(seed);
  bool is_listed = false;
  all.bench.store.servers().on_request = [&](const Operation& request) {
    if (request.kind != Operation::Kind::exists || is_listed) return;
    if (all.bench.contenders(kCounted) != 3) return;
    is_listed = true;
    all.bench.network.arm(all.c.process, Fault::request_late, [] {});
    all.end_session_of_b();
  };
  auto waits = all.c.acquire(kCounted);
  all.bench.run(seconds(3));
  all.bench.store.servers().on_request = [](const Operation&) {};
  return all.is_stuck(waits);
}

}  // namespace

std::vector<Scenario> counter_scenarios() {
  return {{"two holders at the counter's end", &two_holders_at_the_counters_end, 50},
          {"a reader that was a writer is passed", &passes_a_reader_that_was_a_writer, 3},
          {"made anew during a cut", &stuck_after_a_cut, 5},
          {"made anew before it is watched", &stuck_after_a_late_watch, 20}};
}

}  // namespace dlock::simulation
