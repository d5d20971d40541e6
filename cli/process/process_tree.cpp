// SPDX-License-Identifier: Apache-2.0
#include "cli/process/process_tree.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace dlock::cli {

namespace {

/// A child belongs to the thread that forked it, so every thread is asked.
void add_children(pid_t parent, std::vector<pid_t>& found) {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", parent), error)) {
    std::ifstream children(task.path() / "children");
    pid_t child = 0;
    while (children >> child) found.push_back(child);
  }
}

bool is_zombie(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(file, stat);
  const auto name_end = stat.rfind(')');  // the name may have any byte in it
  return name_end == std::string::npos || stat.compare(name_end, 3, ") Z") == 0;
}

}  // namespace

void adopt_orphans() noexcept { ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL); }

std::vector<pid_t> descendants() {
  std::vector<pid_t> found;
  add_children(::getpid(), found);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
  return found;
}

bool is_ancestor(pid_t wanted) {
  // Bounded: what /proc says may change while we walk.
  pid_t pid = ::getppid();
  for (int step = 0; step < 1000 && pid > 1; ++step) {
    if (pid == wanted) return true;
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string stat;
    std::getline(file, stat);
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > stat.size()) return false;
    pid = std::atoi(stat.c_str() + name_end + 4);
  }
  return pid == wanted;
}

void signal_descendants(int signal) {
  // One that forks while we look has a child that we did not see: look again. Bounded, for a fork
  // bomb is not our business.
  for (int round = 0; round < 20; ++round) {
    bool alive = false;
    for (const pid_t pid : descendants()) {
      if (is_zombie(pid)) continue;
      alive = true;
      ::kill(pid, signal);
    }
    if (signal != SIGKILL || !alive) return;
  }
}

CommandGuard::~CommandGuard() {
  if (command_ < 0) return;
  try {
    signal_descendants(SIGKILL);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory to look for them
  }
  ::kill(command_, SIGKILL);
  while (::waitpid(command_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace dlock::cli
