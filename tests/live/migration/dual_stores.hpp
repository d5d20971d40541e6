// SPDX-License-Identifier: Apache-2.0
//
// The stores of a fleet that is moved in mode dual, on real servers: a source that forgets
// (Memcached, or Redis as installed), and ZooKeeper, where the window is, too.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "testkit/servers/server.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/migration/stores.hpp"

namespace dlock::fleet {

inline constexpr const char* kDualPlan = "leave-cache";

class DualStores {
 public:
  /// `source`: memcached or redis.
  explicit DualStores(std::string source);

  std::string url(const std::string& store) const;
  /// A configuration file: of programs of this phase; of those that know the source alone, as
  /// before the plan; of those that know the target alone, as after it.
  std::filesystem::path config(int phase) const;
  std::filesystem::path legacy_config() const { return folder_ / "legacy.yaml"; }
  std::filesystem::path home_config() const { return folder_ / "home.yaml"; }

  /// The source forgets all locks and tokens: by a restart, or by a command.
  void wipe(bool by_restart);
  testkit::Server& source() { return *source_; }
  /// The end of it.
  std::string zookeeper_log() const;

 private:
  void write(const std::filesystem::path& file, const std::string& route) const;

  const std::string kind_;
  testkit::TempDir folder_{"dlock-dual-fleet"};
  testkit::ZooKeeperServer zookeeper_{{.tick = 200ms}};
  std::unique_ptr<testkit::Server> source_;
};

}  // namespace dlock::fleet
