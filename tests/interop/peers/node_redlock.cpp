// SPDX-License-Identifier: Apache-2.0
//
// node-redlock with ioredis, under Debian's nodejs, as npm installs them from
// tests/interop/package.json: its release, and the one that is to come.
#include "testkit/servers/server.hpp"
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

Peer peer(std::string name, std::string module) {
  return {.name = std::move(name),
          .start_store = start_redis,
          .key = "locks:{name}",
          .program =
              [module](const SharedStore& store, std::chrono::milliseconds lease) {
                testkit::ProcessOptions options;
                options.argv = {testkit::find_server_program("node", "nodejs").string(),
                                std::string(DLOCK_INTEROP_CLIENTS) + "/node_redlock.js",
                                store.endpoint(),
                                std::to_string(lease.count()),
                                "locks:",
                                module};
                options.env = {{"NODE_PATH", DLOCK_INTEROP_MODULES}};
                return options;
              },
          .extends = true};
}

}  // namespace

const Peer* node_redlock() {
  static const Peer one = peer("NodeRedlock", "redlock");
  return &one;
}

const Peer* node_redlock_5() {
  static const Peer one = peer("NodeRedlock5", "redlock5");
  return &one;
}

}  // namespace dlock::interop
