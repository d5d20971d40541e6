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

#include "tests/simulation/redis/program.hpp"

namespace dlock::simulation::redis {

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
