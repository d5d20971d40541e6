// SPDX-License-Identifier: Apache-2.0
//
// The simulated Redis: a server, and as installed an asynchronous replica that may take over; the
// production backend runs against it unchanged, scripts and all.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/redis/rules/names.hpp"
#include "tests/simulation/redis/history.hpp"
#include "tests/simulation/redis/promises.hpp"
#include "tests/simulation/redis/server.hpp"
#include "tests/simulation/redis/sim_stream.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

/// `exclusive`: one server that fsyncs every write before it answers and never evicts.
std::unique_ptr<SimStore> make_redis(World& world, Network& network, bool exclusive);

namespace redis {

/// The server's wall clock is stepped by at most this.
inline constexpr milliseconds kLongestJump{6000};

class SimRedis final : public SimStore {
 public:
  SimRedis(World& world, Network& network, bool exclusive, milliseconds lease = seconds(3));
  ~SimRedis() override;

  std::string_view name() const override { return "redis"; }
  const BackendDescriptor& descriptor() const override;
  StoreOptions options() const override;
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override;
  std::vector<Fault> faults() const override;
  bool strike(Fault fault, Process& near, const std::string& lock) override;
  void heal() override;
  void on_crash(Process& process) override;
  checkers::Belongings belongings() const override;
  std::vector<std::string> owners(const std::string& lock) const override;
  bool tokens_fall(const std::set<Fault>& struck) const override;
  bool is_permitted(const std::string& key) const override;
  Duration lease() const override;
  Duration longest_lease() const override;
  Duration progress_bound() const override;
  Duration calm_bound() const override;

  /// Whose data count, be it up or on its way up. For tests.
  Server& primary() noexcept { return *primary_; }
  bool is_up() const noexcept { return address_->server != nullptr; }
  /// How far a replica is behind, or how much a crash loses; for tests, else by chance.
  std::optional<Duration> next_lag;
  /// Whether the next failover is hidden by a proxy; for tests, else by chance.
  std::optional<bool> next_hidden;
  void step_clock(milliseconds by);
  /// How often waiters look; for tests, before the first process.
  milliseconds poll{200};
  /// In the order of arrival; before the first process.
  bool fair = false;

 private:
  ServerSettings settings() const;
  void watch(const std::shared_ptr<Server>& server);
  void on_change(Server& server, const std::string& key, const Entry* entry);
  void note_broken(Server& server, const std::string& lock,
                   const std::vector<Promises::Holder>& left);
  static std::uint64_t token_of(const std::string& text, const std::string& owner_id);
  std::vector<Promises::Holder> holders(Server& server, const std::string& lock) const;
  void audit(Fault cause);

  bool restart(Fault cause, Snapshot left);
  bool fail_over();
  bool evict(const std::string& lock);
  bool remove(const std::string& lock);
  bool jump_clock();
  void take(const std::string& key);
  void start();
  void end_deposed();
  Duration lag();
  Duration longest_set_back() const;

  World& world_;
  Network& network_;
  const bool exclusive_;
  const milliseconds lease_;
  const production::KeyMap names_;
  std::shared_ptr<Server> primary_;
  std::shared_ptr<Server> deposed_;  ///< still talks to those who were connected to it
  std::shared_ptr<Address> address_ = std::make_shared<Address>();
  History history_;
  Promises promises_;
  std::vector<std::weak_ptr<Client>> clients_;
  std::optional<Fault>
      shortened_;  ///< some promises will be broken by this, when their keys expire
  std::set<std::string> forgotten_;  ///< owners whose lock was, and has not been made again
  Duration set_back_{0};             ///< by how much the server's clock went back, all in all
  bool striking_ = false;            ///< what changes is a fault's doing, no client's
  TimerId starting_ = 0;
  TimerId deposing_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for what the world calls later
};

}  // namespace redis
}  // namespace dlock::simulation
