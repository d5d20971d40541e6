// SPDX-License-Identifier: Apache-2.0
#include "testkit/servers/redis.hpp"

#include <fmt/format.h>

#include <utility>

namespace dlock::testkit {

RedisServer::RedisServer(std::vector<std::string> options)
    : Server("redis"), options_(std::move(options)) {}

std::string RedisServer::url() const { return fmt::format("redis://127.0.0.1:{}/0", port()); }

bool RedisServer::answers() {
  return ask(port(), "PING\r\n", "\n", within(std::chrono::seconds(1))).starts_with("+PONG");
}

std::vector<std::string> RedisServer::command() {
  std::vector<std::string> command{find_server_program("redis-server", "redis-server").string(),
                                   "--bind",
                                   "127.0.0.1",
                                   "--port",
                                   std::to_string(port()),
                                   "--dir",
                                   folder().string(),
                                   "--save",
                                   "",
                                   "--daemonize",
                                   "no"};
  command.insert(command.end(), options_.begin(), options_.end());
  return command;
}

}  // namespace dlock::testkit
