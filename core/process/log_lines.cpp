// SPDX-License-Identifier: Apache-2.0
#include "core/process/log_lines.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace dlock::core {
namespace {

/// spdlog's own is on stdio, whose mutex a stuck writer would keep, also from exit().
class StandardError final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view left(line.data(), line.size());
    while (!left.empty()) {
      const auto written = ::write(STDERR_FILENO, left.data(), left.size());
      if (written > 0) {
        left.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno == EAGAIN) {
        pollfd polled{STDERR_FILENO, POLLOUT, 0};
        ::poll(&polled, 1, -1);
      } else if (errno != EINTR) {
        return;
      }
    }
  }
  void flush_() override {}
};

}  // namespace

class LogLines::Queue final : public Errand, public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(Sink sink) : sink_(std::move(sink)) {}

  void push(Crew& crew, LogLevel level, std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMost) {
      ++dropped_;
      return;
    }
    lines_.emplace_back(level, text);
    if (std::exchange(is_posted_, true)) {
      crew.hire();
    } else {
      crew.post(shared_from_this());
    }
  }

  void give_up() noexcept {
    const std::lock_guard lock(mutex_);
    lines_.clear();
    dropped_ = 0;
  }

  void run() override {
    while (true) {
      std::unique_lock lock(mutex_);
      if (const auto dropped = std::exchange(dropped_, 0); dropped > 0) {
        lock.unlock();
        tell_dropped(dropped);
        continue;
      }
      if (lines_.empty()) {
        is_posted_ = false;
        return;
      }
      const auto line = std::move(lines_.front());
      lines_.pop_front();
      lock.unlock();
      write(line.first, line.second);
    }
  }

 private:
  using Line = std::pair<LogLevel, std::string>;

  void write(LogLevel level, std::string_view text) const noexcept {
    try {
      sink_(level, text);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no log is left for it
    }
  }
  void tell_dropped(std::uint64_t count) const {
    write(LogLevel::warning,
          fmt::format("{} lines were dropped: the log did not take them in time", count));
  }

  const Sink sink_;
  std::mutex mutex_;
  std::deque<Line> lines_;
  std::uint64_t dropped_ = 0;
  bool is_posted_ = false;
};

LogLines::LogLines(Sink sink)
    : crew_(std::make_shared<Crew>(Crew::Limits())),
      queue_(std::make_shared<Queue>(std::move(sink))) {}

LogLines::~LogLines() { finish(std::chrono::seconds(1)); }

void LogLines::write(LogLevel level, std::string_view text) { queue_->push(*crew_, level, text); }

void LogLines::finish(std::chrono::milliseconds patience) noexcept {
  crew_->finish(std::chrono::steady_clock::now() + patience);
  queue_->give_up();
}

LogLines::Sink default_log() {
  // Not registered with spdlog: the application's own loggers are none of our business.
  auto logger = std::make_shared<spdlog::logger>("dlock", std::make_shared<StandardError>());
  logger->set_level(spdlog::level::warn);
  return [logger](LogLevel level, std::string_view text) {
    static constexpr spdlog::level::level_enum kLevels[] = {
        spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    logger->log(kLevels[static_cast<int>(level)], "dlock: {}", text);
  };
}

}  // namespace dlock::core
