// SPDX-License-Identifier: Apache-2.0
//
// The fork and exec below Process. One thread does all of them and lasts as long as the process
// does, since the parent-death signal comes when the forking *thread* ends.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

namespace dlock::testkit::detail {

/// In place of a descriptor in `Launch::standard`.
inline constexpr int inherited = -1;
inline constexpr int closed = -2;

/// Everything the child needs, ready before the fork: between fork and exec it may not allocate.
struct Launch {
  std::string program;
  std::vector<std::string> argument_strings, environment_strings;
  std::vector<char*> arguments, environment;
  std::string working_directory;
  std::array<int, 3> standard{inherited, inherited, inherited};
  std::vector<int> keep_fds;
  bool die_with_parent = true;
  bool new_session = false;
  pid_t parent = -1;
  int error_pipe = -1;
};

/// The child's pid. When it cannot run the program, it writes errno into the error pipe and ends.
/// Throws std::system_error when the fork fails.
pid_t spawn(const Launch& launch);

}  // namespace dlock::testkit::detail
