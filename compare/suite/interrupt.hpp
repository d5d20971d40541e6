// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: what was measured is kept, nothing is left behind.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>

namespace dlock::compare {

/// Thrown out of whatever waits when the run is to end. Everything started is ended by destructors.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Signals are read from `descriptor` (a signalfd); the first makes every check() throw. If the run
/// has not ended ten seconds after it, or at a second signal, `last_resort` is called, and then the
/// process ends at once. Any thread.
class Interrupt {
 public:
  Interrupt(int descriptor, std::function<void()> last_resort);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void check() const {
    if (signal_.load() != 0) throw Interrupted();
  }
  /// 0: none came.
  int signal() const { return signal_.load(); }
  /// Sleeps, and throws when a signal comes.
  void sleep(std::chrono::milliseconds duration) const;

 private:
  void watch(const std::stop_token& stop, int descriptor);

  std::atomic<int> signal_{0};
  std::function<void()> last_resort_;
  std::jthread watcher_;
};

}  // namespace dlock::compare
