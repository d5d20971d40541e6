// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/leased_stores.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"

namespace dlock::fleet {
namespace {

std::unique_ptr<testkit::Server> make_server(const std::string& kind) {
  if (kind == "memcached") {
    // A thousand programs are more than its default of connections.
    return std::make_unique<testkit::MemcachedServer>(std::vector<std::string>{"-c", "2048"});
  }
  if (kind == "redis") return std::make_unique<testkit::RedisServer>();
  if (kind == "durable") {
    return std::make_unique<testkit::RedisServer>(
        std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "always"});
  }
  if (kind == "zookeeper") {
    return std::make_unique<testkit::ZooKeeperServer>(testkit::ZooKeeperOptions{.tick = 200ms});
  }
  throw std::invalid_argument("no server " + kind);
}

std::string end_of_log(const testkit::Server& server) {
  constexpr std::size_t kLongest = 4000;
  const auto log = server.log();
  return log.size() > kLongest ? log.substr(log.size() - kLongest) : log;
}

}  // namespace

LeasedStores::LeasedStores(const std::string& source, const std::string& target)
    : is_memcached_(source == "memcached"),
      is_target_redis_(target != "zookeeper"),
      source_(make_server(source)),
      target_(make_server(target)) {
  source_->start();
  target_->start();
  if (target == "redis") {
    gate_ = make_server("zookeeper");
    gate_->start();
    gate_link_ = std::make_unique<testkit::FaultProxy>(gate_->port());
  }
  const auto direct = has_third_store() ? url("gate") : std::string();
  const auto by_link = has_third_store() ? gate_url(gate_link_->port()) : std::string();
  const auto plan = fmt::format("migrate: {{ from: cache, to: home, plan: {}, gate: {} }}",
                                kLeasedPlan, has_third_store() ? "gate" : "home");
  write(route(), plan, by_link);
  write(operators(), plan, direct);
  write(legacy(), "store: cache", by_link);
  write(home(), "store: home", by_link);
}

std::string LeasedStores::gate_url(std::uint16_t port) const {
  return fmt::format("zookeeper://127.0.0.1:{}/gates?session_timeout=4s&request_timeout=250ms",
                     port);
}

std::string LeasedStores::url(const std::string& store) const {
  // Memcached's shortest lease is 3s, the last second of which may be missing.
  if (store == "cache") {
    return fmt::format("{}://127.0.0.1:{}{}?lease={}ms&request_timeout=500ms",
                       is_memcached_ ? "memcached" : "redis", source_->port(),
                       is_memcached_ ? "" : "/0", is_memcached_ ? 3000 : kLease.count());
  }
  if (store == "gate") return gate_url(gate_->port());
  if (store != "home") throw std::invalid_argument("no store " + store);
  if (is_target_redis_) {
    return fmt::format("redis://127.0.0.1:{}/0?lease={}ms&request_timeout=500ms", target_->port(),
                       kLease.count());
  }
  return fmt::format("zookeeper://127.0.0.1:{}/locks?session_timeout={}ms", target_->port(),
                     kLease.count());
}

void LeasedStores::write(const std::filesystem::path& file, const std::string& route,
                         const std::string& gate_at) const {
  auto text = fmt::format("stores:\n  cache: {{ url: \"{}\" }}\n  home: {{ url: \"{}\" }}\n",
                          url("cache"), url("home"));
  if (!gate_at.empty()) text += fmt::format("  gate: {{ url: \"{}\" }}\n", gate_at);
  testkit::write_file(file, text + "locks:\n  - { match: \"**\", " + route + " }\n");
}

std::string LeasedStores::logs() const {
  return end_of_log(*target_) + (has_third_store() ? end_of_log(*gate_) : std::string());
}

void LeasedStores::wipe(bool by_restart) {
  if (by_restart) {
    source_->kill9();
    source_->start();
    return;
  }
  const auto answer = testkit::ask(
      source_->port(), is_memcached_ ? "flush_all\r\n" : "FLUSHALL\r\n", "OK", testkit::patience());
  if (answer.find("OK") == std::string::npos) throw std::runtime_error("not flushed: " + answer);
}

}  // namespace dlock::fleet
