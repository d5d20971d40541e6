// SPDX-License-Identifier: Apache-2.0
//
// A process may have been started with its standard streams closed. The next descriptor that
// anybody opens is then 0, 1 or 2: a connection of ours, and what some library prints would go to
// the server.
#pragma once

namespace dlock::core {

/// Opens /dev/null in the place of each standard stream that is closed, for good. Any thread.
void fill_standard_streams() noexcept;

}  // namespace dlock::core
