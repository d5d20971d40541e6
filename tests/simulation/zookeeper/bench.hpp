// SPDX-License-Identifier: Apache-2.0
//
// A world with an ensemble and some processes with production stores, for tests.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/host.hpp"
#include "tests/simulation/zookeeper/sim_zookeeper.hpp"

namespace dlock::simulation {

/// What an acquire came to.
struct Outcome {
  bool told = false;
  TimePoint at{};
  error_code ec;
  LockHandle handle;
  std::optional<TimePoint> lost_at;
  LossReason reason = LossReason::none;
  std::weak_ptr<core::Acquisition> acquisition;
};

struct Program {
  Program(World& world, SimStore& kind, const std::string& name)
      : process(world, name, {}), host(std::make_shared<SimHost>(process)) {
    store = make_store(host, kind);
  }

  std::shared_ptr<Outcome> acquire(const std::string& lock,
                                   std::optional<milliseconds> wait = std::nullopt) {
    core::Acquisition::Request request;
    request.name = lock;
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = process.now() + *wait;
    request.limits.connect_timeout = store->setup().settings.connect_timeout;
    request.limits.retry = store->setup().settings.retry;
    auto outcome = std::make_shared<Outcome>();
    auto acquisition = std::make_shared<core::Acquisition>(
        store, request, [this, outcome](error_code ec, LockHandle handle) {
          outcome->told = true;
          outcome->at = process.world().now();
          outcome->ec = ec;
          outcome->handle = std::move(handle);
          if (ec) return;
          outcome->handle.on_state([this, outcome](HandleState state, LossReason why) {
            if (state != HandleState::lost || outcome->lost_at) return;
            outcome->lost_at = process.world().now();
            outcome->reason = why;
          });
        });
    outcome->acquisition = acquisition;
    process.deliver([this, acquisition] { store->acquire(acquisition); });
    return outcome;
  }
  void release(const std::shared_ptr<Outcome>& outcome) {
    process.deliver([outcome] { outcome->handle = LockHandle(); });
  }

  Process process;
  std::shared_ptr<SimHost> host;
  std::shared_ptr<core::Store> store;
};

/// Quiet unless a test makes something go wrong.
struct Bench {
  explicit Bench(std::uint64_t seed = 1, ensemble::Settings settings = {})
      : world(seed, true), zookeeper(world, network, settings) {}
  // A store that is not closed keeps what waits in it for ever.
  ~Bench() {
    for (const auto& program : programs) {
      program->process.resume();
      asio::co_spawn(program->process.executor(), program->store->close(), asio::detached);
    }
    run(seconds(30));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Program& program(const std::string& name) {
    programs.push_back(std::make_unique<Program>(world, zookeeper, name));
    return *programs.back();
  }
  void run(Duration time) { world.run_until(world.now() + time); }
  template <class Predicate>
  bool run_until(Predicate done, Duration time = seconds(60)) {
    const auto end = world.now() + time;
    while (!done() && world.now() < end) run(microseconds(500));
    return done();
  }
  bool granted(const std::shared_ptr<Outcome>& outcome, Duration time = seconds(60)) {
    return run_until([&] { return outcome->told; }, time) && !outcome->ec;
  }
  std::size_t contenders(const std::string& lock) {
    return zookeeper.servers().committed().children(SimZooKeeper::path_of(lock)).size();
  }
  int server_of(Program& program) {
    return zookeeper.servers().server_of(zookeeper.session_of(program.process));
  }

  World world;
  Network network{world};
  SimZooKeeper zookeeper;
  std::vector<std::unique_ptr<Program>> programs;
};

/// How long before the rival's grant the holder was told; negative: after it, or not yet a second
/// later; empty: the rival was not granted. The holder knows that server only (-1: all), or another
/// one would rescue it; the fault strikes once a holds and b waits.
inline std::optional<Duration> told_before(Bench& bench, int server, const std::string& lock,
                                           const std::function<void(Program&)>& fault) {
  bench.zookeeper.pin(server);
  auto& a = bench.program("a");
  auto held = a.acquire(lock);
  if (!bench.granted(held)) return {};
  bench.zookeeper.pin(-1);
  auto& b = bench.program("b");
  auto rival = b.acquire(lock);
  bench.run(bench.world.between(seconds(3), seconds(6)));
  fault(a);
  if (!bench.granted(rival)) return {};
  bench.run(seconds(1));
  return rival->at - held->lost_at.value_or(rival->at + seconds(9));
}

}  // namespace dlock::simulation
