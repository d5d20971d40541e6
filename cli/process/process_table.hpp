// SPDX-License-Identifier: Apache-2.0
//
// Processes as /proc shows them. A /proc of an outer pid namespace lists other pids than getpid()
// and kill() use; the functions here take and return the pids of this process's own namespace.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <vector>

namespace dlock::cli {

/// Returns the children of this process, their children and so on, zombies excluded. A process may
/// fork after it was read. Empty optional: /proc is not mounted or does not show this process.
std::optional<std::vector<pid_t>> descendants();

/// Returns how long ago the ancestor `pid` of this process was started. Empty: `pid` is not an
/// ancestor, or /proc does not show it.
std::optional<std::chrono::nanoseconds> age_of_ancestor(pid_t pid);

}  // namespace dlock::cli
