// SPDX-License-Identifier: Apache-2.0
//
// A worker of a soak: actors in threads that want, hold and give back a handful of locks, and write
// down what they were told.
#pragma once

#include <chrono>
#include <string>

namespace dlock::soak {

struct WorkerOptions {
  std::string url;
  std::string config;  ///< a file, instead of the URL: its locks may move between stores
  std::string folder;
  int number = 0;  ///< each process has one of its own
  unsigned seed = 0;
  int names = 0;
  /// Now and then a name that is made at that moment, by all who choose one then, or of the last
  /// half minute.
  bool makes_names = false;
  std::chrono::milliseconds lease{0};  ///< the longest holds go beyond it
};

std::string lock_name(int index);
std::string log_file(const std::string& folder, int worker);

inline constexpr int kActors = 3;

/// Works until the end of standard input; the exit status.
int work(const WorkerOptions& options);

}  // namespace dlock::soak
