// SPDX-License-Identifier: Apache-2.0
//
// A simulated ensemble and some programs, for scenarios and tests.
#pragma once

#include <functional>
#include <limits>

#include "tests/simulation/bench.hpp"
#include "tests/simulation/zookeeper/sim_zookeeper.hpp"

namespace dlock::simulation {

struct EnsembleBench : Bench<SimZooKeeper> {
  explicit EnsembleBench(std::uint64_t seed = 1, ensemble::Settings settings = {})
      : Bench(seed, settings) {}

  std::size_t contenders(const std::string& lock) {
    return store.servers().committed().children(SimZooKeeper::path_of(lock)).size();
  }
  /// As if two billion others had had the lock by now.
  void use_up_numbers(const std::string& lock) {
    store.servers().submit({.kind = ensemble::Operation::Kind::set,
                            .path = SimZooKeeper::path_of(lock),
                            .sequence = std::numeric_limits<std::int32_t>::max()},
                           {});
    run(milliseconds(100));
  }
  int server_of(Program& program) {
    return store.servers().server_of(store.session_of(program.process));
  }
};

/// How long before the rival's grant the holder was told; negative: after it, or not yet a second
/// later; empty: the rival was not granted. The holder knows that server only (-1: all), or another
/// one would rescue it; the fault strikes once a holds and b waits.
inline std::optional<Duration> told_before(EnsembleBench& bench, int server,
                                           const std::string& lock,
                                           const std::function<void(Program&)>& fault) {
  bench.store.pin(server);
  auto& a = bench.program("a");
  auto held = a.acquire(lock);
  if (!bench.granted(held)) return {};
  bench.store.pin(-1);
  auto& b = bench.program("b");
  auto rival = b.acquire(lock);
  bench.run(bench.world.between(seconds(3), seconds(6)));
  fault(a);
  if (!bench.granted(rival)) return {};
  bench.run(seconds(1));
  return rival->at - held->lost_at.value_or(rival->at + seconds(9));
}

}  // namespace dlock::simulation
