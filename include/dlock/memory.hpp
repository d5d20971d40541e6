// SPDX-License-Identifier: Apache-2.0
//
// The in-process store for tests of code that uses locks: `memory://name`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::memory {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::memory
