// SPDX-License-Identifier: Apache-2.0
//
// Signals as something to poll for. They are blocked before any thread is started, so that all
// threads inherit that, and read from a signalfd: no handler, no async-signal-safety.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

namespace dlock::program {

struct ReceivedSignal {
  int number = 0;
  /// Sent by the terminal (Ctrl-C): the whole foreground group has got it, our command too.
  bool from_terminal = false;
};

/// One at a time, on the main thread, before others are started.
class Signals {
 public:
  /// One that is ignored already (nohup, a shell's background job) stays ignored and is left out.
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Readable when next() has something.
  int descriptor() const noexcept { return descriptor_; }
  std::optional<ReceivedSignal> next() noexcept;

  /// In a forked child, before exec: everything as dlock itself found it. Async-signal-safe.
  void restore_in_child() const noexcept;

 private:
  sigset_t original_{};
  int descriptor_ = -1;
};

/// Ends a wait: HUP, INT, QUIT, TERM, USR1, USR2.
bool ends_a_wait(int signal) noexcept;

/// At the start of main(): a write to a closed pipe is an error, not our end. The default is given
/// back to a child by Signals::restore_in_child().
void ignore_broken_pipes() noexcept;

}  // namespace dlock::program
