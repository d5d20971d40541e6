// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library. They must not receive the application's signals. A thread that is made
// here has all signals blocked from its first instruction, so that the application's own threads
// receive them (signalfd, sigwait, a handler on the main thread).
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::inline v0 {

/// While it lives, the calling thread has all signals blocked, and so has what it starts.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// While it lives, pthread_cancel() does not end the calling thread: that would unwind its caller
/// through functions that do not throw. The thread ends at its next cancellation point after that.
class NoCancellation {
 public:
  NoCancellation() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Throws std::system_error if the system cannot make a thread. `run` has not run then, and the
/// caller must complete its task. A std::bad_alloc that leaves `run` ends the process.
template <class Run>
std::thread start_thread(Run&& run) {
  const BlockedSignals blocked;
  return std::thread([own = std::forward<Run>(run)]() mutable { or_end(own); });
}

}  // namespace dlock::inline v0
