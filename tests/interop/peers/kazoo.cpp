// SPDX-License-Identifier: Apache-2.0
//
// kazoo, from the Debian package python3-kazoo.
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

Peer peer(std::string name, std::string kind, std::vector<std::string> patterns) {
  return {.name = std::move(name),
          .start_store = start_zookeeper,
          .key = "/app/{name}",
          .program =
              [kind, patterns](const SharedStore& store, std::chrono::milliseconds lease) {
                std::vector<std::string> arguments{store.endpoint(), std::to_string(lease.count()),
                                                   "/app/", kind};
                arguments.insert(arguments.end(), patterns.begin(), patterns.end());
                return python("kazoo_client.py", arguments);
              },
          .silent_about_loss = true};
}

}  // namespace

// Told that names like ours are locks, too.
const Peer* kazoo() {
  static const Peer one = peer("Kazoo", "Lock", {"-lock-"});
  return &one;
}

const Peer* kazoo_alone() {
  static const Peer one = peer("KazooAlone", "Lock", {});
  return &one;
}

const Peer* kazoo_semaphore() {
  static const Peer one = peer("KazooSemaphore", "Semaphore", {"8"});
  return &one;
}

const ReadWritePeer& kazoo_readers() {
  static const Peer reader = peer("KazooReader", "ReadLock", {"-lock-", "__WRIT__"});
  static const Peer writer = peer("KazooWriter", "WriteLock", {"-lock-", "__WRIT__", "__READ__"});
  static const ReadWritePeer both{&reader, &writer};
  return both;
}

}  // namespace dlock::interop
