// SPDX-License-Identifier: Apache-2.0
//
// SimStore: one simulated kind of store: its servers, and the production backend wired to them in
// each process. The servers do what the real ones do, the mistakes included; what they may do wrong
// is said in `faults`.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/spi/descriptor.hpp"
#include "testkit/checkers/leftovers.hpp"
#include "tests/simulation/network.hpp"

namespace dlock::simulation {

class SimStore {
 public:
  /// Told whenever the servers forget a lock, or a claim on one, that is granted and in its lease:
  /// the one who holds it cannot know yet.
  using OnForgotten =
      std::function<void(const std::string& lock, const std::string& owner_id, Fault cause)>;

  virtual ~SimStore() = default;

  virtual std::string_view name() const = 0;
  /// Of the production backend, for its options and their defaults.
  virtual const BackendDescriptor& descriptor() const = 0;
  /// The options as a user would have written them; short leases, so that much happens.
  virtual StoreOptions options() const = 0;
  /// The production backend for one process. `process` and `sink` outlive it.
  virtual std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) = 0;

  /// Whether its processes can be cut off from it.
  virtual bool has_network() const { return true; }
  /// Those of the store and of messages that can strike it as it is set up.
  virtual std::vector<Fault> faults() const = 0;
  /// Makes one of the store's own faults happen, for `lock` where it is about one. False if it
  /// makes no sense at the moment (it is down already, nobody holds the lock).
  virtual bool strike(Fault fault, Process& near, const std::string& lock) = 0;
  /// Every server is up and reaches every other one, from now on.
  virtual void heal() = 0;
  /// Its kernel closes the connections of a process that has crashed.
  virtual void on_crash(Process& process) = 0;

  /// What there is in the servers: keys or nodes, watches and subscriptions.
  virtual checkers::Belongings belongings() const = 0;
  /// By what owner ids the store knows those who hold the lock, or whose place keeps others
  /// waiting.
  virtual std::vector<std::string> owners(const std::string& lock) const = 0;
  /// Whether a key may outlive its lock by design (a token's counter).
  virtual bool is_permitted(const std::string& key) const = 0;
  /// Whether its tokens may go back, struck by those faults beyond its promise.
  virtual bool tokens_fall(const std::set<Fault>& struck) const { return !struck.empty(); }
  /// After this long without any client, nothing but the permitted is left.
  virtual Duration longest_lease() const = 0;
  /// How far ahead of the moment before a request was sent its confirmation lets a holder believe.
  virtual Duration lease() const { return longest_lease(); }
  /// How long before the moment at which `lease` begins a loss still is one of the same lock, not
  /// of another one of the same claim.
  virtual Duration remembers() const { return Duration::zero(); }
  /// How long a holder may still believe, after the store forgot its lock and a renewal was sent.
  virtual Duration believes_on() const { return lease(); }
  /// How long a wanted lock may take after everything is whole again and no holder keeps it.
  virtual Duration progress_bound() const = 0;
  /// The same long after that, when nothing that was broken is left over.
  virtual Duration calm_bound() const = 0;

  /// Told when a late copy of a request, or a hand-over, makes a lock anew that was forgotten; with
  /// its token, if the store knows it then, else 0.
  std::function<void(const std::string& owner_id, std::uint64_t token)> on_made =
      [](const std::string&, std::uint64_t) {};
  /// Told when a request takes a lock off the servers: its holder's, or an operator's, where the
  /// store cannot tell the two apart.
  std::function<void(const std::string& lock, const std::string& owner_id)> on_taken_off =
      [](const std::string&, const std::string&) {};
  /// Told when an operator's request takes a lock off the servers, where the store can tell: it may
  /// have been under way for as long as the operator's process was cut off.
  std::function<void(const std::string& lock, const std::string& owner_id)> on_broken =
      [](const std::string&, const std::string&) {};
  /// Told of each request that a server carries out, if it is set: its kind, and its bytes with
  /// those of the reply. Empty on stores that do not count.
  std::function<void(std::string_view what, std::size_t bytes)> on_command;
  OnForgotten on_forgotten = [](const std::string&, const std::string&, Fault) {};
};

/// `make`, exclusive: set up, and struck, such that it promises exclusion; otherwise as installed.
/// Null if it cannot be that.
struct Kind {
  std::string_view name;
  std::unique_ptr<SimStore> (*make)(World& world, Network& network, bool exclusive);
};
/// Those of every backend that is built; generated.
const std::vector<Kind>& kinds();

}  // namespace dlock::simulation
