// SPDX-License-Identifier: Apache-2.0
//
// One process of a crowd: many programs, each with its own manager and so with its own connections
// and its own readings of a plan's gate.
#pragma once

#include <cstddef>
#include <string>

namespace dlock::fleet {

struct CrowdOptions {
  std::string config;
  std::string board;      ///< the file
  std::size_t first = 0;  ///< the number of its first program
  std::size_t programs = 1;
};

/// The lock that the first program of a process holds until the end.
inline std::string long_name(std::size_t program) {
  return "billing/long/" + std::to_string(program);
}

/// Works until the end of standard input. Returns the exit status.
int crowd(const CrowdOptions& options);

}  // namespace dlock::fleet
