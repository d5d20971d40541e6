// SPDX-License-Identifier: Apache-2.0
#include "cli/process/process_tree.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "cli/process/process_table.hpp"
#include "dlock/detail/out_of_memory.hpp"

namespace dlock::cli {

void adopt_orphans() noexcept { ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL); }

Signalled signal_tree(pid_t command, int signal) {
  Signalled result;
  // Its pid is certain: nobody but this process can reap it.
  if (command > 0 && ::kill(command, signal) != 0) result.command_error = errno;
  constexpr int kMostRounds = 20;  // a fork bomb ends it
  for (int round = 0; round < kMostRounds; ++round) {
    const auto others = descendants();
    result.has_seen_all = others.has_value();
    bool any = false;
    for (const pid_t pid : others.value_or(std::vector<pid_t>())) {
      if (pid == command) continue;
      if (::kill(pid, signal) == 0) {
        any = true;
      } else if (errno == EPERM) {
        result.refused = pid;
      }
    }
    if (signal != SIGKILL || !any) break;
  }
  return result;
}

bool has_hidden_child() {
  constexpr int kTries = 40;
  constexpr int kPause_ms = 5;
  for (int i = 0; i < kTries; ++i) {
    pid_t reaped = 0;
    do reaped = ::waitpid(-1, nullptr, WNOHANG);
    while (reaped > 0 || (reaped < 0 && errno == EINTR));
    if (reaped < 0) return false;
    const auto shown = descendants();
    // Those that are shown have been reported, or end just now.
    if (!shown || shown->empty()) return true;
    ::poll(nullptr, 0, kPause_ms);
  }
  return false;
}

CommandGuard::~CommandGuard() {
  if (command_ < 0) return;
  ::kill(command_, SIGKILL);
  or_end([this] { signal_tree(command_, SIGKILL); });
  while (::waitpid(command_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace dlock::cli
