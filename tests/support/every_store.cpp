// SPDX-License-Identifier: Apache-2.0
#include "tests/support/every_store.hpp"

#include <stdexcept>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::testkit {
namespace {

template <class Kind, class... Options>
RunningStore started(std::string_view backend, const Options&... options) {
  const auto server = std::make_shared<Kind>(options...);
  server->start();
  return {std::string(backend), server->url(), server};
}

}  // namespace

RunningStore start_store(std::string_view backend) {
  if (backend == "zookeeper") {
    ZooKeeperOptions options;
    options.max_session_timeout = std::chrono::minutes(1);
    return started<ZooKeeperServer>(backend, options);
  }
  if (backend == "redis") return started<RedisServer>(backend);
  if (backend == "memcached") return started<MemcachedServer>(backend);
  if (backend == "local") {
    const auto folder = std::make_shared<TempDir>("dlock-store");
    return {std::string(backend), "file://" + (*folder / "locks").string(), folder};
  }
  throw std::invalid_argument("how is a store of the backend '" + std::string(backend) +
                              "' started? tests/support/every_store.cpp must know");
}

std::vector<RunningStore> start_every_store() {
  std::vector<RunningStore> stores;
  for (const auto* backend : OpenOptions::built_in().backends) {
    if (backend->name != "memory") stores.push_back(start_store(backend->name));
  }
  return stores;
}

}  // namespace dlock::testkit
