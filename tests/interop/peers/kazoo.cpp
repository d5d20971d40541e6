// SPDX-License-Identifier: Apache-2.0
//
// kazoo, from the Debian package python3-kazoo.
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

Peer peer(std::string name, std::vector<std::string> patterns) {
  return {.name = std::move(name),
          .start_store = start_zookeeper,
          .key = "/app/{name}",
          .program =
              [patterns](const SharedStore& store, std::chrono::milliseconds lease) {
                std::vector<std::string> arguments{store.endpoint(), std::to_string(lease.count()),
                                                   "/app/"};
                arguments.insert(arguments.end(), patterns.begin(), patterns.end());
                return python("kazoo_client.py", arguments);
              },
          .silent_about_loss = true};
}

}  // namespace

// Told that names like ours are locks, too.
const Peer* kazoo() {
  static const Peer one = peer("Kazoo", {"-lock-"});
  return &one;
}

const Peer* kazoo_alone() {
  static const Peer one = peer("KazooAlone", {});
  return &one;
}

}  // namespace dlock::interop
