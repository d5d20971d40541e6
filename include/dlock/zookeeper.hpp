// SPDX-License-Identifier: Apache-2.0
//
// The ZooKeeper backend: `zookeeper://host1,host2,host3/root?session_timeout=10s`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::zookeeper {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::zookeeper
