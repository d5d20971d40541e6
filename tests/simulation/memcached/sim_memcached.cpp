// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached/sim_memcached.hpp"

#include "backends/memcached/backend.hpp"
#include "backends/memcached/rules/value.hpp"
#include "core/config/options.hpp"
#include "dlock/memcached.hpp"
#include "tests/simulation/memcached/sim_client.hpp"

namespace dlock::simulation {
namespace memcached {

SimMemcached::SimMemcached(World& world, Network& network, bool exclusive)
    : world_(world),
      network_(network),
      exclusive_(exclusive),
      lease_(world.chance(0.5) ? seconds(3) : seconds(10)),
      server_(world) {
  server_.on_added = [this](const std::string& text) {
    if (const auto value = dlock::memcached::read_value(text)) on_made(value->owner.id, 0);
  };
  server_.on_removed = [this](const std::string& text) {
    const auto value = dlock::memcached::read_value(text);
    if (value) on_taken_off(value->name, value->owner.id);
  };
}

const BackendDescriptor& SimMemcached::descriptor() const { return dlock::memcached::backend(); }

StoreOptions SimMemcached::options() const {
  StoreConfig config;
  config.name = "memcached";
  config.url = "memcached://10.0.0.1?lease=" + std::to_string(lease_.count()) + "s";
  const BackendDescriptor* known[] = {&dlock::memcached::backend()};
  return core::resolve_store(config, known).options;
}

std::unique_ptr<Backend> SimMemcached::make_backend(Process& process, EventSink& sink) {
  const auto driver = make_driver(process, network_, server_);
  return std::make_unique<dlock::memcached::MemcachedBackend>(options(), process, sink, driver);
}

std::vector<Fault> SimMemcached::faults() const {
  std::vector<Fault> all = {Fault::request_lost, Fault::reply_lost, Fault::request_late,
                            Fault::reply_late,   Fault::duplicated, Fault::reset_before,
                            Fault::reset_after,  Fault::overtaken,  Fault::deleted};
  if (!exclusive_) {
    all.push_back(Fault::server_emptied);
    all.push_back(Fault::evicted);
  }
  return all;
}

bool SimMemcached::strike(Fault fault, Process& /*near*/, const std::string& lock) {
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

checkers::Belongings SimMemcached::belongings() const {
  checkers::Belongings all;
  for (const auto& [key, item] : server_.live()) all.keys.insert(key);
  return all;
}

std::vector<std::string> SimMemcached::owners(const std::string& lock) const {
  const auto* item = server_.get(names_.lock_key(lock));
  const auto value = item == nullptr ? std::nullopt : dlock::memcached::read_value(item->value);
  if (!value) return {};
  return {value->owner.id};
}

bool SimMemcached::is_permitted(const std::string& key) const {
  return key.ends_with("%t") || key == names_.canary_key() || key == names_.list_key();
}

void SimMemcached::forget(const std::string& key, Fault cause) {
  const auto* item = server_.get(key);
  if (item == nullptr) return;
  const auto value = dlock::memcached::read_value(item->value);
  if (value) on_forgotten(value->name, value->owner.id, cause);
}

void SimMemcached::forget_all(Fault cause) {
  for (const auto& [key, item] : server_.live()) forget(key, cause);
}

}  // namespace memcached

std::unique_ptr<SimStore> make_memcached(World& world, Network& network, bool exclusive) {
  return std::make_unique<memcached::SimMemcached>(world, network, exclusive);
}

}  // namespace dlock::simulation
