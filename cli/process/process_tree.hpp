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

/// Whether we are below that process.
bool is_ancestor(pid_t pid);

/// Sends the signal to all of them; SIGKILL again until there is none left that is not a zombie.
void signal_descendants(int signal);

/// While it lives, a command runs under a lock. Destroyed before it has heard that the command has
/// ended (something was thrown), it kills it with all that it has started, and waits for its end:
/// the lock, which is given back after that, never goes first.
class CommandGuard {
 public:
  explicit CommandGuard(pid_t command) noexcept : command_(command) {}
  ~CommandGuard();
  CommandGuard(const CommandGuard&) = delete;
  CommandGuard& operator=(const CommandGuard&) = delete;
  void has_ended() noexcept { command_ = -1; }

 private:
  pid_t command_;
};

}  // namespace dlock::cli
