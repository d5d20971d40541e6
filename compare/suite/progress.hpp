// SPDX-License-Identifier: Apache-2.0
//
// Where the run is and how long it will take, on standard error: one line that changes on a
// terminal, else a line for each part.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace dlock::compare {

/// Any thread.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What is to be done in all, in seconds as planned.
  void plan(double seconds);
  /// Begins a part that was planned to take so long.
  void begin(std::string_view what);
  void done(double planned_seconds);
  /// A line of its own.
  void note(std::string_view text);

 private:
  std::string time_left() const;
  void show();

  std::mutex mutex_;
  bool terminal_;
  double planned_ = 0;
  double done_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::string what_;
};

}  // namespace dlock::compare
