// SPDX-License-Identifier: Apache-2.0
//
// LogLines: the manager's messages on their way to the log. The log may block (a full pipe), call
// dlock, or throw, so it is called on a separate thread. A limited number of lines wait for it.
// Lines beyond that are dropped, and their number is logged.
//
// Not spdlog's asynchronous logger: its thread pool joins its threads when it is destroyed, and one
// that is stuck in write() would keep the program from ending.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/loop/crew.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::core {

/// Thread safety: all members from any thread.
class LogLines {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;
  static constexpr std::size_t kMost = 1000;

  explicit LogLines(Sink sink);
  /// finish(), a second at most.
  ~LogLines();
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  /// Never waits for the log.
  void write(LogLevel level, std::string_view text);
  /// Tries again to make the thread, if it could not be made.
  void hire() noexcept { crew_->hire(); }
  /// Waits until all is written; what is not by then is dropped, and a log that is stuck is left to
  /// itself.
  void finish(std::chrono::milliseconds patience) noexcept;

 private:
  class Queue;
  const std::shared_ptr<Crew> crew_;
  const std::shared_ptr<Queue> queue_;
};

/// Lines from `warning` up to standard error.
LogLines::Sink default_log();

}  // namespace dlock::core
