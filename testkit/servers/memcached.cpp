// SPDX-License-Identifier: Apache-2.0
#include "testkit/servers/memcached.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace dlock::testkit {

MemcachedServer::MemcachedServer(std::vector<std::string> options)
    : Server("memcached"), options_(std::move(options)) {}

std::string MemcachedServer::url() const { return fmt::format("memcached://127.0.0.1:{}", port()); }

bool MemcachedServer::answers() {
  return ask(port(), "version\r\n", "\n", within(std::chrono::seconds(1))).starts_with("VERSION");
}

std::vector<std::string> MemcachedServer::command() {
  std::vector<std::string> command{find_server_program("memcached", "memcached").string(),
                                   "-l",
                                   "127.0.0.1",
                                   "-p",
                                   std::to_string(port()),
                                   "-U",
                                   "0"};
  // Under root it refuses to run unless told as whom.
  if (::geteuid() == 0) command.insert(command.end(), {"-u", "root"});
  command.insert(command.end(), options_.begin(), options_.end());
  return command;
}

}  // namespace dlock::testkit
