// SPDX-License-Identifier: Apache-2.0
//
// pylibmc, which is libmemcached in Python, from the Debian package python3-pylibmc.
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {
namespace {

Peer placing(const char* name, std::unique_ptr<SharedStore> (*start)(), std::string behavior) {
  return {.name = name,
          .start_store = start,
          .key = "dlock:{name}",
          .program = [behavior = std::move(behavior)](const SharedStore& store,
                                                      std::chrono::milliseconds lease) {
            const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease).count();
            return python("pylibmc_client.py",
                          {store.endpoint(), std::to_string(seconds), "dlock:", behavior});
          }};
}

}  // namespace

const std::vector<const Peer*>& placing_peers() {
  // pylibmc places by modula unless it is configured.
  static const Peer modula = placing(
      "PylibmcModula", [] { return start_memcached_servers("modula"); }, "{}");
  static const Peer ketama = placing(
      "PylibmcKetama", [] { return start_memcached_servers("ketama"); }, R"({"ketama": 1})");
  static const Peer weighted = placing(
      "PylibmcKetamaWeighted", [] { return start_memcached_servers("ketama_weighted"); },
      R"({"ketama_weighted": 1})");
  static const std::vector<const Peer*> all{&modula, &ketama, &weighted};
  return all;
}

}  // namespace dlock::interop
