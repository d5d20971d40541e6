// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "program/output.hpp"

namespace dlock::compare {

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (terminal_) program::write_message("\r\x1b[K");
}

void Progress::plan(double seconds) {
  const std::scoped_lock guard(mutex_);
  planned_ = seconds;
  start_ = std::chrono::steady_clock::now();
}

// The plan is corrected by how long the parts so far really took, once that says something.
std::string Progress::time_left() const {
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double pace = done_ > 5 ? std::clamp(passed / done_, 0.5, 5.0) : 1.0;
  const auto left = static_cast<int>(std::max(0.0, (planned_ - done_) * pace));
  if (left >= 90) return fmt::format("about {} min left", (left + 30) / 60);
  return fmt::format("about {} s left", left);
}

void Progress::show() {
  const double share = planned_ > 0 ? std::min(done_ / planned_, 1.0) : 0;
  program::write_message(fmt::format("{}dlock compare: {:3.0f} %, {}: {}{}",
                                     terminal_ ? "\r\x1b[K" : "", share * 100, time_left(), what_,
                                     terminal_ ? "" : "\n"));
}

void Progress::begin(std::string_view what) {
  const std::scoped_lock guard(mutex_);
  what_ = what;
  show();
}

void Progress::done(double planned_seconds) {
  const std::scoped_lock guard(mutex_);
  done_ += planned_seconds;
  if (terminal_) show();
}

void Progress::note(std::string_view text) {
  const std::scoped_lock guard(mutex_);
  program::write_message(fmt::format("{}dlock compare: {}\n", terminal_ ? "\r\x1b[K" : "", text));
}

}  // namespace dlock::compare
