// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/dual_stores.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"

namespace dlock::fleet {

DualStores::DualStores(std::string source) : kind_(std::move(source)) {
  zookeeper_.start();
  if (kind_ == "memcached") {
    source_ = std::make_unique<testkit::MemcachedServer>();
  } else if (kind_ == "redis") {
    source_ = std::make_unique<testkit::RedisServer>();
  } else {
    throw std::invalid_argument("no source " + kind_);
  }
  source_->start();
  for (int phase = 0; phase <= 2; ++phase) {
    write(config(phase),
          fmt::format("migrate: {{ from: cache, to: zk, plan: {}, mode: dual, phase: {} }}",
                      kDualPlan, phase));
  }
  write(legacy_config(), "store: cache");
  write(home_config(), "store: zk");
}

std::string DualStores::url(const std::string& store) const {
  if (store == "zk") {
    return fmt::format("zookeeper://127.0.0.1:{}/locks?session_timeout={}ms", zookeeper_.port(),
                       kLease.count());
  }
  // Memcached's shortest lease is 3s, of which the last may be missing.
  const bool is_redis = kind_ == "redis";
  return fmt::format("{}://127.0.0.1:{}{}?lease={}ms&request_timeout=500ms", kind_, source_->port(),
                     is_redis ? "/0" : "", is_redis ? kLease.count() : 3000);
}

std::filesystem::path DualStores::config(int phase) const {
  return folder_ / fmt::format("phase{}.yaml", phase);
}

void DualStores::write(const std::filesystem::path& file, const std::string& route) const {
  std::string text = "stores:\n";
  for (const auto* store : {"cache", "zk"}) {
    text += fmt::format("  {}: {{ url: \"{}\" }}\n", store, url(store));
  }
  testkit::write_file(file, text + "locks:\n  - { match: \"**\", " + route + " }\n");
}

std::string DualStores::zookeeper_log() const {
  constexpr std::size_t kLongest = 4000;
  const auto log = zookeeper_.log();
  return log.size() > kLongest ? log.substr(log.size() - kLongest) : log;
}

void DualStores::wipe(bool by_restart) {
  if (by_restart) {
    source_->kill9();
    source_->start();
    return;
  }
  const bool is_redis = kind_ == "redis";
  const auto said = testkit::ask(source_->port(), is_redis ? "FLUSHALL\r\n" : "flush_all\r\n", "OK",
                                 testkit::patience());
  if (said.find("OK") == std::string::npos) throw std::runtime_error("not wiped: " + said);
}

}  // namespace dlock::fleet
