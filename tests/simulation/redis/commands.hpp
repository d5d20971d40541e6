// SPDX-License-Identifier: Apache-2.0
//
// The data commands of Redis 7 that the backend and its scripts use, over a Keyspace. They answer
// what a real server answers, errors included (sim_redis_test.cpp compares).
#pragma once

#include <functional>

#include "tests/simulation/redis/keyspace.hpp"
#include "tests/simulation/redis/resp.hpp"

namespace dlock::simulation::redis {

struct CommandContext {
  Keyspace& keys;
  /// The server's wall clock. It stands still while a script runs.
  std::int64_t now_us = 0;
  /// To how many subscribers.
  std::function<std::int64_t(const std::string& channel, const std::string& text)> publish;
  std::function<Reply()> info;

  std::int64_t now_ms() const noexcept { return now_us / 1000; }
};

/// `command` is not empty.
Reply run_command(CommandContext& context, const Command& command);

/// Upper case: commands are case-insensitive.
std::string upper(std::string text);

}  // namespace dlock::simulation::redis
