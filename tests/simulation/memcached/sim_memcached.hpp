// SPDX-License-Identifier: Apache-2.0
//
// The forgetful store: one Memcached server. Set up as exclusive, nothing makes it forget: what it
// promises under the assumptions it names. As installed, it is restarted, flushed, and short of
// memory.
#pragma once

#include <memory>

#include "backends/memcached/rules/names.hpp"
#include "tests/simulation/memcached/sim_server.hpp"
#include "tests/simulation/network.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation::memcached {

class SimMemcached final : public SimStore {
 public:
  SimMemcached(World& world, Network& network, bool exclusive);

  std::string_view name() const override { return "memcached"; }
  const BackendDescriptor& descriptor() const override;
  StoreOptions options() const override;
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override;

  std::vector<Fault> faults() const override;
  bool strike(Fault fault, Process& near, const std::string& lock) override;
  void heal() override { server_.start(); }
  void on_crash(Process&) override {}  // the server keeps nothing by connection

  checkers::Belongings belongings() const override;
  std::vector<std::string> owners(const std::string& lock) const override;
  bool is_permitted(const std::string& key) const override;
  /// The lease, and the second that rounding up may add.
  Duration longest_lease() const override { return lease_ + seconds(1); }
  Duration lease() const override { return lease_; }
  // A dead holder's lease, rounded up. A connection that was silent when all was healed costs its
  // next request 1 s, or 3 s where it is the first one; a connection that was tried in vain until
  // then is tried again after 2 s; then a poll.
  Duration progress_bound() const override {
    return longest_lease() + seconds(3) + seconds(2) + seconds(1);
  }

  // A poll, 50 ms and a quarter, and the round trips of taking it.
  Duration calm_bound() const override { return milliseconds(300); }

 private:
  void forget(const std::string& key, Fault cause);
  void forget_all(Fault cause);

  World& world_;
  Network& network_;
  const bool exclusive_;
  const seconds lease_;
  const dlock::memcached::KeyMap names_{"dlock:{name}"};
  mutable SimServer server_;
};

}  // namespace dlock::simulation::memcached
