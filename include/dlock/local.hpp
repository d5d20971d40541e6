// SPDX-License-Identifier: Apache-2.0
//
// The embedded store: locks as files in a directory, `file:///var/lib/app/locks`. No server.
#pragma once

namespace dlock::inline v0 {
struct BackendDescriptor;
}

namespace dlock::local {

/// For OpenOptions::backends, when this backend is linked alone.
const BackendDescriptor& backend();

}  // namespace dlock::local
