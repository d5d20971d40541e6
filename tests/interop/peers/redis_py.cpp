// SPDX-License-Identifier: Apache-2.0
//
// redis-py, from the Debian package python3-redis.
#include "tests/interop/peers/peer.hpp"

namespace dlock::interop {

const Peer* redis_py() {
  static const Peer one{.name = "RedisPy",
                        .start_store = start_redis,
                        .key = "{name}",
                        .program =
                            [](const SharedStore& store, std::chrono::milliseconds lease) {
                              return python("redis_py_client.py",
                                            {store.endpoint(), std::to_string(lease.count()), ""});
                            },
                        .extends = true};
  return &one;
}

}  // namespace dlock::interop
