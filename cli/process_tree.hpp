// SPDX-License-Identifier: Apache-2.0
//
// A process and everything it started. `sh -c 'a; b'` killed leaves `b` running without the lock;
// so a lost lock ends the whole tree.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dlock::cli {

/// From now on, orphans below us become our children (and are found by descendants()).
void adopt_orphans() noexcept;

/// All our children, their children, and so on. A picture of the past: a process may fork on.
std::vector<pid_t> descendants();

/// Sends the signal to all of them; SIGKILL again until there is none left that is not a zombie.
void signal_descendants(int signal);

}  // namespace dlock::cli
