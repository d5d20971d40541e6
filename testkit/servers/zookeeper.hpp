// SPDX-License-Identifier: Apache-2.0
//
// ZooKeeper servers, from Debian's packages libzookeeper-java and default-jre-headless (the package
// zookeeper would bring a desktop's Java), started directly in a small Java machine. A killed
// server keeps its data folder, so `start` brings it back with what it knew.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testkit/fault_proxy.hpp"
#include "testkit/servers/server.hpp"

namespace dlock::testkit {

struct ZooKeeperOptions {
  std::chrono::milliseconds tick{500};
  /// 0: ZooKeeper's own, two and twenty ticks.
  std::chrono::milliseconds min_session_timeout{0};
  std::chrono::milliseconds max_session_timeout{0};
  /// In ticks: how long a follower may take to join its leader, and to be out of step with it.
  int init_limit = 10;
  int sync_limit = 5;
  /// How often emptied container nodes are collected.
  std::chrono::milliseconds container_check{60000};
  /// Wait for the disk at each write. Off: tests kill processes, never the machine.
  bool fsync = false;
  std::vector<std::string> extra_config{};  ///< lines for zoo.cfg
  std::vector<std::string> java_options{};  ///< as in {"-Dzookeeper.skipACL=yes"}
};

/// One server: alone, or as a member that a ZooKeeperEnsemble configures.
class ZooKeeperServer : public Server {
 public:
  explicit ZooKeeperServer(ZooKeeperOptions options = {});

  std::string url() const override;
  /// Serving clients: answers `ruok` and tells a mode.
  bool answers() override;

  /// The answer to a four-letter word such as "wchs"; empty when it cannot be reached in time.
  std::string four_letter(std::string_view word,
                          std::chrono::milliseconds patience = std::chrono::seconds(5)) const;
  /// "standalone", "leader", "follower", or empty: not serving now.
  std::string mode() const;

 protected:
  std::vector<std::string> command() override;

 private:
  friend class ZooKeeperEnsemble;

  ZooKeeperOptions options_;
  int id_ = 0;                             // its myid in an ensemble; 0: alone
  std::vector<std::string> quorum_lines_;  // "server.N=..." as this server is to see them
};

/// Three servers whose links to each other run through proxies, so that a test can part any two
/// while clients still reach both. Servers are numbered 0 to 2.
class ZooKeeperEnsemble {
 public:
  static constexpr std::size_t size = 3;

  explicit ZooKeeperEnsemble(ZooKeeperOptions options = {});

  /// Starts all and waits until there is a leader and everybody serves.
  void start();
  /// Of all servers: what clients write.
  std::string url() const;
  ZooKeeperServer& server(std::size_t index) { return *servers_.at(index); }

  /// From now on nothing that `a` and `b` send reaches the other; nobody is told. Connections stay
  /// up and new ones are accepted, and silent.
  void cut(std::size_t a, std::size_t b);
  /// Cuts a server from both others.
  void isolate(std::size_t index);
  /// Mends all links. Connections from the time of the cut are reset, and made anew.
  void heal();

  /// The server that says it leads; nullopt: none, or more than one (an old one not aware yet).
  std::optional<std::size_t> leader() const;
  std::vector<std::size_t> followers() const;
  /// Waits until a server other than `old` leads with at least one follower; its number.
  std::optional<std::size_t> wait_for_leader(Deadline deadline,
                                             std::optional<std::size_t> other_than = {}) const;
  /// Waits until one leads and all others follow.
  bool wait_until_whole(Deadline deadline) const;

 private:
  // The way from one server to a port of another.
  struct Link {
    std::size_t from;
    std::size_t to;
    std::unique_ptr<FaultProxy> proxy;
  };

  FaultProxy& link(std::vector<Link>& links, std::size_t from, std::size_t to);
  void connect_links();
  void set_cut(std::size_t a, std::size_t b, bool on);

  std::array<std::unique_ptr<ZooKeeperServer>, size> servers_;
  std::array<Port, size> quorum_ports_;
  std::array<Port, size> election_ports_;
  std::vector<Link> quorum_links_;
  std::vector<Link> election_links_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
};

}  // namespace dlock::testkit
