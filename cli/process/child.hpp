// SPDX-License-Identifier: Apache-2.0
//
// The command of `dlock run`: started directly (no shell), with our standard streams, terminal and
// process group, and dead when we are.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "program/signals.hpp"

namespace dlock::cli {

struct ChildOptions {
  std::vector<std::string> command;  ///< command[0] is searched in PATH
  /// Added to our environment, or replacing; no value: removed.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> removed_environment;
  int inherited_descriptor = -1;  ///< kept open in it, under a number of its own
};

struct StartedChild {
  pid_t pid = -1;  ///< -1: not started
  int error = 0;   ///< then: errno of fork or exec
};

/// As exec wants them, with a null pointer at the end; valid as long as `texts`.
std::vector<char*> pointers(const std::vector<std::string>& texts);

/// What was open when dlock began is the user's and passed on; what we opened is not. Call it first
/// thing in main().
void remember_open_descriptors();

/// From the main thread only: the kernel's parent-death signal is tied to the thread that forks.
StartedChild start_child(const ChildOptions& options, const program::Signals& signals);

}  // namespace dlock::cli
