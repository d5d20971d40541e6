// SPDX-License-Identifier: Apache-2.0
//
// The embedded store: locks as files in a directory, `file:///var/lib/app/locks`. No server.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::local {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::local
