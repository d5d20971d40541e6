// SPDX-License-Identifier: Apache-2.0
//
// What the ZooKeeper live tests share: managers over this backend alone, a client of another make
// (it writes nodes that we would not), and recorders of what is told to a holder.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/zookeeper/wire/library_client.hpp"
#include "core/loop/real_env.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/zookeeper.hpp"
#include "testkit/await.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/support/state_log.hpp"

namespace dlock::testkit {

using namespace std::chrono_literals;

/// A manager over one store; its warnings fail no test.
inline LockManager open_zookeeper(const std::string& url) {
  OpenOptions options;
  options.backends = {&zookeeper::backend()};
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, std::move(options));
}

inline std::string url_of(const std::vector<std::uint16_t>& ports, std::string_view rest) {
  std::string url = "zookeeper://";
  for (const auto port : ports) {
    if (!url.ends_with('/')) url += ',';
    url += "127.0.0.1:" + std::to_string(port);
  }
  return url.append(rest);
}

/// Returns the server that all cases of a program share: running, with a tick of 500 ms and without
/// nodes. Its program is registered with WHOLE, so that a Java machine starts once for all cases.
ZooKeeperServer& shared_server();

/// A bare session: any node, any request, one at a time. It keeps its session alive on a thread of
/// its own.
class BareClient final : public zookeeper::Client::Listener {
 public:
  explicit BareClient(std::uint16_t port, std::chrono::milliseconds session_timeout = 5s);
  ~BareClient() override;

  std::int64_t session_id();
  /// The new node's path; empty on an error.
  std::string create(const std::string& path, std::string_view data = {},
                     zookeeper::Client::Mode mode = zookeeper::Client::Mode::ephemeral_sequential);
  bool remove(const std::string& path);
  bool set(const std::string& path, std::string_view data);
  bool exists(const std::string& path);
  zookeeper::NodeStat stat(const std::string& path);
  std::vector<std::string> children(const std::string& path);
  void sync(const std::string& path);

 private:
  using Send = std::function<zookeeper::PendingReply(zookeeper::Client&)>;
  zookeeper::Reply ask(Send send);
  void on_connected() override;
  void on_disconnected() override {}
  void on_session_over(bool) override {}
  void on_watch(const std::string&, zookeeper::WatchEvent) override {}
  void on_answer(TimePoint, TimePoint, bool) override {}

  core::RealEnv env_;
  std::promise<void> connected_;
  std::once_flag once_;
  std::shared_ptr<zookeeper::Client> client_;
  std::thread loop_;
};

/// How many watches the server has for its sessions, but for the one that each of ours has on the
/// tokens' offset for as long as it lasts.
long watches_of_locks(const ZooKeeperServer& server);

}  // namespace dlock::testkit
