// SPDX-License-Identifier: Apache-2.0
//
// World: the one clock of a simulated run, everything that is due on it, and the one source of
// chance. The same seed gives the same run, step by step.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "core/loop/timer_queue.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::simulation {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Process;

class World {
 public:
  explicit World(std::uint64_t seed, bool tracing = false) : state_(seed), tracing_(tracing) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  TimePoint now() const noexcept { return now_; }

  /// Runs at that moment, in the order of the moments, then of the calls. Not for processes: what
  /// happens in one goes through it (Process::deliver), since it may be paused or dead.
  TimerId at(TimePoint when, Job job) { return events_.add(when, std::move(job)); }
  TimerId after(Duration time, Job job) { return at(now_ + time, std::move(job)); }
  void cancel(TimerId id) noexcept { events_.remove(id); }

  std::uint64_t random() noexcept;
  /// 0 .. n-1.
  std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : random() % n; }
  bool chance(double probability) noexcept;
  Duration between(Duration from, Duration to) noexcept;

  bool tracing() const noexcept { return tracing_; }
  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (tracing_) write_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  const std::string& trace_text() const noexcept { return trace_; }

  /// Runs everything up to `end`, then stands there.
  void run_until(TimePoint end);
  /// Called after each process has run: what changed in it.
  void on_step(detail::UniqueFunction<void(Process&)> observer) { observer_ = std::move(observer); }

  /// A process that has something to do. (Process's own.)
  void runnable(Process& process) { runnable_.push_back(&process); }

 private:
  void write_trace(const std::string& line);
  void run_processes();

  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t state_;
  bool tracing_;
  std::string trace_;
  core::TimerQueue events_;
  std::deque<Process*> runnable_;
  detail::UniqueFunction<void(Process&)> observer_;
};

}  // namespace dlock::simulation
