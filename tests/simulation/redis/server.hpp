// SPDX-License-Identifier: Apache-2.0
//
// One run of a Redis server: its data, its connections, the scripts it was sent, what it says of
// itself. A restart is another Server with what was left of the data. Commands are carried out one
// at a time and at once, as Redis does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/simulation/redis/commands.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation::redis {

class Session;

/// What INFO and CONFIG GET tell.
struct ServerSettings {
  std::string eviction_policy = "noeviction";
  bool append_only = true;
  std::string fsync = "always";
  int replicas = 0;
};

/// Of the data set: a replica that takes over remembers where its data came from.
struct Lineage {
  std::string id;
  std::string previous = std::string(40, '0');
};

class Server final : public std::enable_shared_from_this<Server> {
 public:
  Server(World& world, ServerSettings settings, Lineage lineage);
  ~Server();
  /// As an access list may have it. Default: allowed.
  void forbid_kill() noexcept { kill_allowed_ = false; }
  /// The number of connected replicas that INFO reports.
  void set_replicas(int replicas) noexcept { settings_.replicas = replicas; }

  Keyspace& keys() noexcept { return keys_; }
  const Lineage& lineage() const noexcept { return lineage_; }

  std::int64_t now_us() const noexcept;
  std::int64_t now_ms() const noexcept { return now_us() / 1000; }
  milliseconds clock_offset() const noexcept { return clock_offset_; }
  void set_clock_offset(milliseconds offset) noexcept { clock_offset_ = offset; }
  /// The world's moment at which a key with that expiry is gone.
  TimePoint world_time(std::int64_t expires_ms) const noexcept;

  /// It is up, but reads its data until then.
  void load_until(TimePoint when) noexcept { loading_until_ = when; }
  Reply serve(Session& session, const Command& command);
  /// Called before each command.
  std::function<void()> before_command;
  /// Called after each, if it is set.
  std::function<void(std::string_view what, std::size_t bytes)> on_served;
  /// For a test.
  std::uint64_t commands_served() const noexcept { return served_; }

  /// A connection has come about, or has ended.
  std::int64_t admit(std::shared_ptr<Session> session);
  void dismiss(Session& session);
  const std::map<std::int64_t, std::shared_ptr<Session>>& sessions() const noexcept {
    return sessions_;
  }
  /// Moves the connections of `from` to this server, as a proxy does; the clients do not notice it.
  /// Subscriptions end.
  void take_over(Server& from);
  /// The server dies: every connection breaks.
  void disconnect_all();
  std::multiset<std::string> subscriptions() const;

 private:
  bool is_loading() const noexcept;
  Reply info() const;
  Reply config(const Command& command) const;
  Reply client(Session& session, const Command& command);
  Reply script(const Command& command);
  Reply evaluate(const Command& command, bool by_hash);
  static Reply subscribe(Session& session, const Command& command);
  std::int64_t publish(const std::string& channel, const std::string& text);
  CommandContext context();

  World& world_;
  ServerSettings settings_;
  bool kill_allowed_ = true;
  const Lineage lineage_;
  const std::string run_id_;
  Keyspace keys_;
  milliseconds clock_offset_{0};
  TimePoint loading_until_{};
  std::map<std::int64_t, std::shared_ptr<Session>> sessions_;
  std::int64_t last_session_ = 0;
  std::set<std::string> known_scripts_;
  std::uint64_t served_ = 0;
};

/// 40 hexadecimal digits, as run ids are.
std::string make_run_id(World& world);

}  // namespace dlock::simulation::redis
