// SPDX-License-Identifier: Apache-2.0
//
// One server, a proxy before it that knows its frames, and programs on either way to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testkit/fault_proxy.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {

class ProxiedZooKeeper : public testing::Test {
 protected:
  static constexpr auto kTick = 500ms;
  static constexpr auto kSession = 2000ms;

  void SetUp() override { proxy_.emplace(server_.port(), frames_.filter()); }
  static std::string url(std::uint16_t port, std::chrono::milliseconds session = kSession) {
    return url_of({port}, "/app?session_timeout=" + std::to_string(session.count()) + "ms");
  }
  LockManager direct() { return open_zookeeper(url(server_.port())); }
  LockManager proxied() { return open_zookeeper(url(proxy_->port())); }
  /// One that holds `job`.
  static std::unique_ptr<Process> holder(
      std::uint16_t port, std::vector<std::pair<std::string, std::string>> env = {}) {
    ProcessOptions options;
    options.argv = {DLOCK_ZOOKEEPER_PROCESS, url(port), "job"};
    options.env = std::move(env);
    return std::make_unique<Process>(std::move(options));
  }
  static std::string next_line(Process& process) {
    return process.read_line(patience()).value_or("(nothing)");
  }

  ZooKeeperServer& server_ = shared_server();
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> proxy_;
};

}  // namespace dlock::testkit
