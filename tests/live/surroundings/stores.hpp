// SPDX-License-Identifier: Apache-2.0
//
// One store of each kind, with short times, and what can happen to it.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/await.hpp"
#include "testkit/fault_proxy.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::testkit {

using namespace std::chrono_literals;  // NOLINT: a header of tests only

inline OpenOptions quiet() {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// Of this build, but for `memory`.
inline std::vector<std::string> shared_stores() {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) {
    if (backend->name != "memory") names.emplace_back(backend->name);
  }
  return names;
}

class SurroundedStore {
 public:
  explicit SurroundedStore(const std::string& backend) : backend_(backend) {
    if (backend == "zookeeper") server_ = std::make_unique<ZooKeeperServer>();
    if (backend == "redis") server_ = std::make_unique<RedisServer>();
    if (backend == "memcached") server_ = std::make_unique<MemcachedServer>();
    if (server_) server_->start();
    // For whoever may be another user.
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  }

  /// Everything is over soon.
  std::string url() const { return url_of(server_ ? server_->url() : ""); }
  /// The same by way of a proxy of its port. There has to be a server.
  std::string url_through(const FaultProxy& proxy) const {
    return url_of(fmt::format("{}://127.0.0.1:{}/", backend_, proxy.port()));
  }
  std::uint16_t port() const { return server_->port(); }

  void vanish() {
    if (server_) server_->kill9();
    if (!server_) std::filesystem::remove_all(folder_ / "locks");
  }
  /// Its server stands still: nobody is refused, and nobody is answered. There has to be one.
  void pause() { server_->pause(); }
  void resume() { server_->resume(); }
  /// Without what it knew, where it keeps that in memory or in a folder.
  void come_back() {
    if (server_) server_->start();
  }

 private:
  std::string url_of(const std::string& server) const {
    const std::string times = "connect_timeout=2s&request_timeout=500ms&release_timeout=500ms";
    if (backend_ == "zookeeper") return server + "app?session_timeout=1500ms&" + times;
    if (backend_ == "redis") return server + "?lease=600ms&" + times;
    if (backend_ == "memcached") return server + "?lease=3s&" + times;
    return "file://" + (folder_ / "locks").string() + "?" + times;
  }

  const std::string backend_;
  std::unique_ptr<Server> server_;
  TempDir folder_{"dlock-surroundings"};
};

}  // namespace dlock::testkit
