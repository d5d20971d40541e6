// SPDX-License-Identifier: Apache-2.0
//
// The forgetful store: one Memcached server. Set up as exclusive, nothing makes it forget: what it
// promises under the assumptions it names. As installed, it is restarted, flushed, and short of
// memory.
#include <memory>

#include "backends/memcached/backend.hpp"
#include "backends/memcached/names.hpp"
#include "backends/memcached/value.hpp"
#include "core/config/options.hpp"
#include "dlock/memcached.hpp"
#include "tests/simulation/memcached/sim_client.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {
namespace {

using memcached::SimServer;

class SimMemcached final : public SimStore {
 public:
  SimMemcached(World& world, Network& network, bool exclusive)
      : world_(world),
        network_(network),
        exclusive_(exclusive),
        lease_(world.chance(0.5) ? seconds(3) : seconds(10)),
        server_(world) {
    server_.on_added = [this](const std::string& text) {
      if (const auto value = dlock::memcached::read_value(text)) on_made(value->owner.id);
    };
    server_.on_removed = [this](const std::string& text) {
      const auto value = dlock::memcached::read_value(text);
      if (value) on_taken_off(value->name, value->owner.id);
    };
  }

  std::string_view name() const override { return "memcached"; }
  const BackendDescriptor& descriptor() const override { return dlock::memcached::backend(); }
  StoreOptions options() const override {
    StoreConfig config;
    config.name = "memcached";
    config.url = "memcached://10.0.0.1?lease=" + std::to_string(lease_.count()) + "s";
    const BackendDescriptor* known[] = {&dlock::memcached::backend()};
    return core::resolve_store(config, known).options;
  }
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override {
    const auto driver = memcached::make_driver(process, network_, server_);
    return std::make_unique<dlock::memcached::MemcachedBackend>(options(), process, sink, driver);
  }

  std::vector<Fault> faults() const override {
    std::vector<Fault> all = {Fault::request_lost, Fault::reply_lost, Fault::request_late,
                              Fault::reply_late,   Fault::duplicated, Fault::reset_before,
                              Fault::reset_after,  Fault::overtaken,  Fault::deleted};
    if (!exclusive_) {
      all.push_back(Fault::server_emptied);
      all.push_back(Fault::evicted);
    }
    return all;
  }

  bool strike(Fault fault, Process& /*near*/, const std::string& lock) override {
    if (!server_.is_up()) return false;
    if (fault == Fault::server_emptied) {
      forget_all(fault);
      if (world_.chance(0.3)) {
        server_.flush();
        return true;
      }
      server_.kill();
      world_.after(world_.between(milliseconds(50), seconds(2)), [this] { server_.start(); });
      return true;
    }
    const auto key = names_.lock_key(lock);
    forget(key, fault);
    if (!server_.drop(key)) return false;
    if (fault == Fault::evicted) server_.count_eviction();
    return true;
  }
  void heal() override { server_.start(); }
  void on_crash(Process&) override {}  // the server keeps nothing by connection

  checkers::Belongings belongings() const override {
    checkers::Belongings all;
    for (const auto& [key, item] : server_.live()) all.keys.insert(key);
    return all;
  }
  std::vector<std::string> owners(const std::string& lock) const override {
    const auto* item = server_.get(names_.lock_key(lock));
    const auto value = item == nullptr ? std::nullopt : dlock::memcached::read_value(item->value);
    if (!value) return {};
    return {value->owner.id};
  }
  bool is_permitted(const std::string& key) const override {
    return key.ends_with("%t") || key == names_.canary_key();
  }
  /// The lease, and the second that rounding up may add.
  Duration longest_lease() const override { return lease_ + seconds(1); }
  Duration lease() const override { return lease_; }
  // A dead holder's lease, rounded up. A connection that was silent when all was healed costs its
  // next request 1 s, or 3 s where it is the first one; then a poll.
  Duration progress_bound() const override { return longest_lease() + seconds(3) + seconds(1); }

  // A poll, 50 ms and a quarter, and the round trips of taking it.
  Duration calm_bound() const override { return milliseconds(300); }

 private:
  void forget(const std::string& key, Fault cause) {
    const auto* item = server_.get(key);
    if (item == nullptr) return;
    const auto value = dlock::memcached::read_value(item->value);
    if (value) on_forgotten(value->name, value->owner.id, cause);
  }
  void forget_all(Fault cause) {
    for (const auto& [key, item] : server_.live()) forget(key, cause);
  }

  World& world_;
  Network& network_;
  const bool exclusive_;
  const seconds lease_;
  const dlock::memcached::KeyMap names_{"dlock:{name}"};
  mutable SimServer server_;
};

}  // namespace

std::unique_ptr<SimStore> make_memcached(World& world, Network& network, bool exclusive) {
  return std::make_unique<SimMemcached>(world, network, exclusive);
}

}  // namespace dlock::simulation
