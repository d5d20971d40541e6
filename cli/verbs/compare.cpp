// SPDX-License-Identifier: Apache-2.0
//
// `dlock compare`: executes the program dlock-compare.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "cli/process/child.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::status;

namespace {

/// The folder of this program; empty if /proc is not mounted.
std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

/// Returns the path of dlock-compare: beside this program, else in PATH. Empty: it is in neither.
std::string find_compare() {
  std::vector<std::string> folders{own_folder()};
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no threads yet
  std::istringstream more(path == nullptr ? "" : path);
  for (std::string folder; std::getline(more, folder, ':');) folders.push_back(folder);
  for (const auto& folder : folders) {
    auto file = folder + "/dlock-compare";
    if (!folder.empty() && ::access(file.c_str(), F_OK) == 0) return file;
  }
  return {};
}

}  // namespace

std::string missing_compare() {
  if (!find_compare().empty()) return {};
  return fmt::format(
      "dlock-compare is not installed: it is neither in {} nor in PATH; build dlock with "
      "-DDLOCK_COMPARE=ON and install it",
      own_folder());
}

int compare(const std::vector<std::string>& words) {
  std::vector<std::string> command{find_compare()};
  if (command.front().empty()) {
    complain(missing_compare());
    return status(Exit::not_found);
  }
  command.insert(command.end(), words.begin(), words.end());
  ::execv(command.front().c_str(), pointers(command).data());
  complain(fmt::format("cannot execute {}: {}", command.front(),
                       std::generic_category().message(errno)));
  return status(Exit::cannot_execute);
}

}  // namespace dlock::cli
