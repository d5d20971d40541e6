// SPDX-License-Identifier: Apache-2.0
//
// A process may have been started with its standard streams closed. The next descriptor that the
// process opens is then 0, 1 or 2. If it is a connection of dlock, the output of a library would be
// sent to the server.
#pragma once

namespace dlock::core {

/// Opens /dev/null permanently in the place of each standard stream that is closed. Any thread.
void fill_standard_streams() noexcept;

}  // namespace dlock::core
