// SPDX-License-Identifier: Apache-2.0
//
// The Redis backend: `redis://user:password@host:6379/0?lease=30s`, `rediss://` with TLS,
// `redis+unix:///run/redis/redis.sock`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::redis {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::redis
