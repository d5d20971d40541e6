// SPDX-License-Identifier: Apache-2.0
//
// A simulated Redis and programs that use it, for tests of one event at a time.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/hold.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/redis/sim_redis.hpp"

namespace dlock::simulation::redis {

/// What became of one acquire.
struct Attempt {
  bool told = false;
  TimePoint at{};
  error_code ec;
  LockHandle handle;
  std::weak_ptr<core::Acquisition> acquisition;

  bool held() const { return told && !ec && handle && handle.state() == HandleState::held; }
  bool lost() const { return told && !ec && handle && handle.state() == HandleState::lost; }
};

/// A process with a store of its own.
class Program {
 public:
  Program(World& world, SimRedis& redis, std::string name)
      : process(world, std::move(name), {}),
        host(std::make_shared<SimHost>(process)),
        store(make_store(host, redis)) {}

  std::shared_ptr<Attempt> acquire(std::optional<milliseconds> wait = std::nullopt) {
    core::Acquisition::Request request;
    request.name = "orders/42";
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = process.now() + *wait;
    request.limits.connect_timeout = store->setup().settings.connect_timeout;
    request.limits.retry = store->setup().settings.retry;
    auto attempt = std::make_shared<Attempt>();
    auto acquisition = std::make_shared<core::Acquisition>(
        store, request, [this, attempt](error_code ec, LockHandle handle) {
          attempt->told = true;
          attempt->at = process.world().now();
          attempt->ec = ec;
          attempt->handle = std::move(handle);
        });
    attempt->acquisition = acquisition;
    process.deliver([this, acquisition] { store->acquire(acquisition); });
    last = attempt;
    return attempt;
  }
  /// Gives the last one back.
  void release() { last->handle = LockHandle(); }

  Process process;
  std::shared_ptr<SimHost> host;
  std::shared_ptr<core::Store> store;
  std::shared_ptr<Attempt> last;
};

class Stage {
 public:
  explicit Stage(bool exclusive, std::uint64_t seed = 1)
      : world(seed, true), network(world), redis(world, network, exclusive) {
    redis.on_forgotten = [this](const std::string& lock, const std::string&, Fault cause) {
      forgotten.emplace_back(lock, cause);
    };
  }
  ~Stage() {
    for (const auto& [name, program] : programs_) {
      program->last.reset();
      asio::co_spawn(program->process.executor(), program->store->close(),
                     [](const std::exception_ptr&) {});
    }
    pass(seconds(60));
    if (::testing::Test::HasFailure()) std::fputs(world.trace_text().c_str(), stderr);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Program& program(const std::string& name) {
    auto& place = programs_[name];
    if (!place) place = std::make_unique<Program>(world, redis, name);
    return *place;
  }
  void pass(Duration time) { world.run_until(world.now() + time); }

  World world;
  Network network;
  SimRedis redis;
  std::vector<std::pair<std::string, Fault>> forgotten;

 private:
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace dlock::simulation::redis
