// SPDX-License-Identifier: Apache-2.0
//
// OpenStack's tooz, from the Debian package python3-tooz, on each of our stores that it has a
// driver for.
#include <fmt/format.h>

#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

using std::chrono::milliseconds;

/// Its leases are whole seconds.
testkit::ProcessOptions with_lease(const char* scheme, const SharedStore& store,
                                   milliseconds lease) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease);
  return python("tooz_client.py", {fmt::format("{}://{}?lock_timeout={}", scheme, store.endpoint(),
                                               seconds.count())});
}

}  // namespace

// It formats its namespace, which is bytes, as text: the key begins with what Python shows of them.
const Peer* tooz_redis() {
  static const Peer one{
      .name = "ToozRedis",
      .start_store = start_redis,
      .key = "b'_tooz'_{name}_lock",
      .program = [](const SharedStore& store,
                    milliseconds lease) { return with_lease("redis", store, lease); },
      .extends = true};
  return &one;
}

// Its `heartbeat` does not look whose the lock is: tooz_test.cpp.
const Peer* tooz_memcached() {
  static const Peer one{.name = "ToozMemcached",
                        .start_store = start_memcached,
                        .key = "__TOOZ_LOCK_{name}",
                        .program = [](const SharedStore& store, milliseconds lease) {
                          return with_lease("memcached", store, lease);
                        }};
  return &one;
}

const Peer* tooz_zookeeper() {
  static const Peer one{.name = "ToozZooKeeper",
                        .start_store = start_zookeeper,
                        .key = "/tooz/locks/{name}",
                        .program = [](const SharedStore& store, milliseconds lease) {
                          return python("tooz_client.py",
                                        {fmt::format("kazoo://{}?timeout={}", store.endpoint(),
                                                     lease.count() / 1000)});
                        }};
  return &one;
}

const Peer* tooz_folder() {
  static const Peer one{.name = "ToozFolder",
                        .start_store = make_folder,
                        .key = "{name}",
                        .program = [](const SharedStore& store, milliseconds) {
                          return python("tooz_client.py", {"file://" + store.endpoint()});
                        }};
  return &one;
}

}  // namespace dlock::interop
