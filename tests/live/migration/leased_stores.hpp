// SPDX-License-Identifier: Apache-2.0
//
// The stores of a plan with a leased gate, on real servers: `cache`, which may forget, and `home`.
// The gate is in `home`, or in a third store `gate` if `home` may forget too.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "testkit/fault_proxy.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/migration/stores.hpp"

namespace dlock::fleet {

inline constexpr const char* kLeasedPlan = "leave-cache";

class LeasedStores {
 public:
  /// `source`: memcached or redis, as installed. `target`: zookeeper, durable (Redis with
  /// appendfsync always) or redis.
  LeasedStores(const std::string& source, const std::string& target);

  /// The URL of `cache`, `home` or `gate`, on the server's own port.
  std::string url(const std::string& store) const;
  /// A configuration of programs: with the plan's route; with the source alone, as before the
  /// plan; with the target alone, as after it.
  std::filesystem::path route() const { return folder_ / "route.yaml"; }
  std::filesystem::path legacy() const { return folder_ / "legacy.yaml"; }
  std::filesystem::path home() const { return folder_ / "home.yaml"; }
  /// The configuration of commands. They reach the gate directly.
  std::filesystem::path operators() const { return folder_ / "operators.yaml"; }

  /// The source forgets all locks and tokens: by a restart, or by a command.
  void wipe(bool by_restart);
  testkit::Server& source() { return *source_; }
  /// The link of programs to a gate in a third store.
  testkit::FaultProxy& gate_link() { return *gate_link_; }
  /// The end of the logs of `home`, and of `gate`.
  std::string logs() const;

 private:
  bool has_third_store() const { return gate_ != nullptr; }
  std::string gate_url(std::uint16_t port) const;
  void write(const std::filesystem::path& file, const std::string& route,
             const std::string& gate_at) const;

  const bool is_memcached_;
  const bool is_target_redis_;
  testkit::TempDir folder_{"dlock-leased"};
  std::unique_ptr<testkit::Server> source_;
  std::unique_ptr<testkit::Server> target_;
  std::unique_ptr<testkit::Server> gate_;
  std::unique_ptr<testkit::FaultProxy> gate_link_;
};

}  // namespace dlock::fleet
