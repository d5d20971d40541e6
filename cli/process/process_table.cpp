// SPDX-License-Identifier: Apache-2.0
#include "cli/process/process_table.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>

#include "dlock/clock.hpp"

namespace dlock::cli {

namespace {

/// A line of /proc/PID/stat. `pid` and `parent` are pids of the namespace that /proc shows.
struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  char state = '?';
  std::uint64_t started_ticks = 0;  ///< after the boot
};

std::optional<Process> read_process(const std::string& folder) {
  std::ifstream file("/proc/" + folder + "/stat");
  std::string stat;
  std::getline(file, stat);
  const auto name_end = stat.rfind(')');  // the name may contain any byte
  if (name_end == std::string::npos) return std::nullopt;
  Process process;
  process.pid = std::atoi(stat.c_str());
  const auto name_begin = stat.find('(') + 1;
  process.name = stat.substr(name_begin, name_end - name_begin);
  std::istringstream fields(stat.substr(name_end + 1));
  fields >> process.state >> process.parent;
  constexpr int kFieldsBetween = 17;  // parent is the fourth field, the start the twenty-second
  std::string ignored;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> ignored;
  fields >> process.started_ticks;
  return fields ? std::optional(process) : std::nullopt;
}

/// The pids of a process in each namespace, from that of /proc inwards; empty if it is not shown.
std::vector<pid_t> pids_of(const std::string& folder) {
  std::ifstream file("/proc/" + folder + "/status");
  std::vector<pid_t> pids;
  for (std::string line; std::getline(file, line);) {
    const bool all = line.starts_with("NSpid:");
    if (!all && !line.starts_with("Pid:")) continue;  // sandboxes may show Pid alone
    std::istringstream numbers(line.substr(line.find(':') + 1));
    pids.clear();
    for (pid_t pid = 0; numbers >> pid;) pids.push_back(pid);
    if (all) break;
  }
  return pids;
}

/// This process in /proc.
struct Self {
  pid_t shown = 0;        ///< its pid there
  std::size_t depth = 0;  ///< of its pid namespace below that of /proc
};

std::optional<Self> find_self() {
  const auto pids = pids_of("self");
  if (pids.empty() || pids.back() != ::getpid()) return std::nullopt;
  return Self{pids.front(), pids.size() - 1};
}

/// Translates a pid of /proc; 0 if the process has ended or is outside this namespace.
pid_t own_pid(pid_t shown, const Self& self) {
  if (self.depth == 0) return shown;
  const auto pids = pids_of(std::to_string(shown));
  return self.depth < pids.size() ? pids[self.depth] : 0;
}

/// The nearest ancestor of this process that `is_wanted` accepts.
template <class Predicate>
std::optional<Process> first_ancestor(Predicate is_wanted) {
  auto process = read_process("self");
  // Bounded: processes may end and be replaced during the walk.
  for (int step = 0; step < 1000 && process && process->parent > 0; ++step) {
    process = read_process(std::to_string(process->parent));
    if (process && is_wanted(*process)) return process;
  }
  return std::nullopt;
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto folder = entry.path().filename().string();
    if (folder.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto process = read_process(folder)) all.push_back(*process);
  }
  return all;
}

}  // namespace

// Reads the parent of each process: /proc/PID/task/TID/children needs CONFIG_PROC_CHILDREN.
std::optional<std::vector<pid_t>> descendants() {
  const auto self = find_self();
  if (!self) return std::nullopt;
  std::unordered_multimap<pid_t, Process> children;
  for (const auto& process : all_processes()) children.emplace(process.parent, process);
  std::vector<pid_t> shown{self->shown};
  std::vector<pid_t> found;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto [begin, end] = children.equal_range(shown[i]);
    for (auto child = begin; child != end; ++child) {
      shown.push_back(child->second.pid);
      if (child->second.state == 'Z') continue;
      if (const auto pid = own_pid(child->second.pid, *self)) found.push_back(pid);
    }
  }
  return found;
}

std::optional<std::chrono::nanoseconds> age_of_ancestor(pid_t wanted) {
  const auto self = find_self();
  if (!self) return std::nullopt;
  const auto ancestor =
      first_ancestor([&](const Process& process) { return own_pid(process.pid, *self) == wanted; });
  if (!ancestor) return std::nullopt;
  const std::chrono::duration<double> started(static_cast<double>(ancestor->started_ticks) /
                                              static_cast<double>(::sysconf(_SC_CLK_TCK)));
  return BoottimeClock::now().time_since_epoch() -
         std::chrono::duration_cast<std::chrono::nanoseconds>(started);
}

}  // namespace dlock::cli
