// SPDX-License-Identifier: Apache-2.0
//
// The Memcached backend: `memcached://host1,host2?lease=30s`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::memcached {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::memcached
