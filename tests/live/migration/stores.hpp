// SPDX-License-Identifier: Apache-2.0
//
// The stores of a migrating fleet, on real servers: a ZooKeeper, a Redis that keeps what it was
// told, a folder. A name that has left a store for good stays sealed in it, so the way back to
// ZooKeeper leads to another root of the same server.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::fleet {

using namespace std::chrono_literals;

/// Redis' lease and ZooKeeper's session alike.
inline constexpr auto kLease = 2000ms;
/// Of the routes: how often who waits looks at the record.
inline constexpr auto kPoll = 200ms;

/// One plan: all names, from one store to the next.
struct Leg {
  std::string from;
  std::string to;
  std::string plan;
};

class Stores {
 public:
  Stores();

  static const std::vector<Leg>& legs();
  std::string url(const std::string& store) const;
  /// As other clients write it; the store `zk` is below `/first` there.
  std::string zookeeper_hosts() const;
  /// A configuration file whose locks take part in the plan.
  std::filesystem::path config(const Leg& leg) const { return file(leg.plan); }
  /// ... or are where the last one has led, for good.
  std::filesystem::path last_config() const { return file("home"); }

  /// What no store may do that locks leave: forgets the plan's gate and the records of these names,
  /// in Redis.
  void forget_in_redis(const std::vector<std::string>& names, const std::string& plan) const;

 private:
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".yaml"); }
  void write(const std::string& name, const std::string& route) const;

  testkit::TempDir folder_{"dlock-fleet"};
  testkit::ZooKeeperServer zookeeper_{{.tick = 200ms}};
  testkit::RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
};

}  // namespace dlock::fleet
