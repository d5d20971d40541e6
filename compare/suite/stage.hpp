// SPDX-License-Identifier: Apache-2.0
//
// A safety scenario on its way: a store of its own, clients in processes of their own, the resource
// that they guard, and the steps that the scenario's data says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "compare/servers/store.hpp"
#include "compare/suite/context.hpp"
#include "compare/suite/judge.hpp"
#include "compare/suite/peers.hpp"
#include "compare/suite/worker_process.hpp"
#include "testkit/fault_proxy.hpp"

namespace dlock::compare {

/// The resource that the lock guards: takes writes on a socket and stamps them.
class GuardedResource {
 public:
  explicit GuardedResource(std::filesystem::path socket);
  ~GuardedResource();
  GuardedResource(const GuardedResource&) = delete;
  GuardedResource& operator=(const GuardedResource&) = delete;

  /// Ends the reception; all that came.
  std::vector<Arrival> take();

 private:
  void receive(const std::stop_token& stop);

  std::filesystem::path path_;
  int socket_ = -1;
  std::vector<Arrival> incoming_plans_;
  std::jthread thread_;
};

/// Not thread-safe; distinct stages are independent.
class Stage {
 public:
  /// `driver`: `dlock`, `naive` with the flaw that the scenario names, or a peer.
  Stage(Context& context, const boost::json::object& scenario, Store& store, DriverProgram driver);

  /// Plays the steps. Throws what hinders the scenario; not what it finds out.
  void play();
  Outcome& outcome() { return outcome_; }
  /// What the store declares, asked before anything is broken.
  const boost::json::object& declared() const { return declared_; }
  /// Whether a client of that name was granted the lock; how often a release by another thread was
  /// let through; both for the pitfalls.
  bool was_granted(const std::string& client) const;
  bool was_told_lost(const std::string& client) const;
  /// What the clients said, for the raw data.
  boost::json::array& events() { return events_; }

 private:
  struct Client {
    std::unique_ptr<testkit::FaultProxy> proxy;
    std::unique_ptr<Worker> worker;
    std::int64_t first_grant = 0;
    bool alive = true;
  };

  void start_client(const std::string& name, bool through_proxy);
  void step(const boost::json::array& words);
  void act_on_client(const std::string& verb, const std::string& name);
  void act_on_network(const std::string& verb, const std::string& name);
  /// Listens to all clients until `name` has said `event` since the last step that could cause it.
  bool await(const std::string& name, const std::string& event, double leases, bool patient);
  void release_all(std::int64_t count);
  void listen(testkit::Deadline until);
  void hear(const std::string& name, const boost::json::object& event);
  void mark(checkers::EventKind kind, const std::string& client = {});

  Context& context_;
  const boost::json::object& scenario_;
  Store& store_;
  DriverProgram driver_;
  std::string id_;
  GuardedResource resource_;
  boost::json::object declared_;
  std::map<std::string, Client> clients_;
  std::map<std::string, int> said_;  // by client and event, what no step has waited for yet
  Outcome outcome_;
  boost::json::array events_;
};

}  // namespace dlock::compare
