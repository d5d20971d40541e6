// SPDX-License-Identifier: Apache-2.0
//
// A simulated program with a store of its own on the simulated Redis.
#pragma once

#include <memory>
#include <optional>
#include <string>

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
  Program(World& world, SimRedis& redis, std::string name, Process::Clock clock = {})
      : process(world, std::move(name), clock),
        host(std::make_shared<SimHost>(process)),
        store(make_store(host, redis)) {}

  std::shared_ptr<Attempt> acquire(std::optional<milliseconds> wait = std::nullopt,
                                   const std::string& lock = "orders/42") {
    core::Acquisition::Request request;
    request.name = lock;
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
  void cancel(const Attempt& attempt) {
    process.deliver([weak = attempt.acquisition] {
      if (const auto acquisition = weak.lock()) acquisition->cancel();
    });
  }
  /// Gives the last one back.
  void release() { last->handle = LockHandle(); }

  Process process;
  std::shared_ptr<SimHost> host;
  std::shared_ptr<core::Store> store;
  std::shared_ptr<Attempt> last;
};

}  // namespace dlock::simulation::redis
