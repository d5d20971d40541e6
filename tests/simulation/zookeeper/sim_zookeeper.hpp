// SPDX-License-Identifier: Apache-2.0
//
// The ZooKeeper backend over a simulated ensemble of three servers.
#pragma once

#include <map>
#include <vector>

#include "backends/zookeeper/wire/library.hpp"
#include "tests/simulation/sim_store.hpp"
#include "tests/simulation/zookeeper/sim_client.hpp"

namespace dlock::simulation {

class SimZooKeeper final : public SimStore {
 public:
  SimZooKeeper(World& world, Network& network, ensemble::Settings settings);

  std::string_view name() const override { return "zookeeper"; }
  const BackendDescriptor& descriptor() const override;
  StoreOptions options() const override;
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override;
  std::vector<Fault> faults() const override;
  bool strike(Fault fault, Process& near, const std::string& lock) override;
  void heal() override { servers_.heal(); }
  void on_crash(Process& process) override;
  checkers::Belongings belongings() const override;
  std::vector<std::string> owners(const std::string& lock) const override;
  bool is_permitted(const std::string& key) const override;
  Duration lease() const override;
  Duration remembers() const override { return seconds(10); }
  Duration believes_on() const override;
  Duration longest_lease() const override;
  Duration progress_bound() const override;
  Duration calm_bound() const override;

  /// Stores that are made from now on know this server only; -1: all.
  void pin(int server) noexcept { pinned_ = server; }
  ensemble::Ensemble& servers() noexcept { return servers_; }
  /// The newest session of that process that is connected; 0: none.
  std::int64_t session_of(const Process& process) const;
  /// The client of that process that lives longest.
  SimClient& client_of(const Process& process) const;
  static std::string path_of(const std::string& lock);
  /// The first in line; empty: nobody.
  std::string first_of(const std::string& lock) const;

 private:
  /// Makes the clients of all backends; a process knows its own.
  class Driver final : public zookeeper::Library {
   public:
    explicit Driver(SimZooKeeper& store) : store_(store) {}
    std::shared_ptr<zookeeper::Client> make_client(Env& env, zookeeper::Client::Options options,
                                                   zookeeper::Client::Listener& listener) override;
    asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                            TimePoint deadline) override;

   private:
    SimZooKeeper& store_;
  };

  SimClient* holder_of(const std::string& lock) const;
  void hold_back(Process& process);
  bool cut_something(Process& near, const std::string& lock);
  bool remove_by_hand(const std::string& lock);
  /// Where the lock's holder is connected, or the process; -1: nowhere.
  int server_near(const Process& near, const std::string& lock) const;

  World& world_;
  Network& network_;
  ensemble::Ensemble servers_;
  Driver driver_;
  int pinned_ = -1;
  std::vector<std::weak_ptr<SimClient>> clients_;
};

std::unique_ptr<SimStore> make_zookeeper(World& world, Network& network, bool exclusive);

}  // namespace dlock::simulation
