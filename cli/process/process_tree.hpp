// SPDX-License-Identifier: Apache-2.0
//
// The command of `dlock run` and everything that it started. `sh -c 'a; b'` killed leaves `b`
// running without the lock, so a lost lock ends the whole tree.
#pragma once

#include <sys/types.h>

#include <optional>

namespace dlock::cli {

/// Makes orphans below this process its children, so that they stay in the tree.
void adopt_orphans() noexcept;

/// What a signal reached.
struct Signalled {
  int command_error = 0;           ///< errno of kill() for the command itself; 0: sent
  std::optional<pid_t> refused{};  ///< a descendant that this process may not signal
  bool has_seen_all = true;        ///< false: /proc does not show the descendants
};

/// Sends `signal` to the command and to its descendants. SIGKILL is repeated for processes that
/// were forked meanwhile. `command`: a child of this process that was not waited for, or -1:
/// descendants only.
Signalled signal_tree(pid_t command, int signal);

/// Returns whether this process has a child that /proc does not show (hidepid). Call it after the
/// command has ended and SIGKILL was sent: its orphans are children then. Blocks 200 ms at most.
bool has_hidden_child();

/// Ends the command if an exception leaves its scope: kills it with everything that it has started
/// and waits for its end, so that the lock is never released before.
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
