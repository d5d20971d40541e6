// SPDX-License-Identifier: Apache-2.0
//
// A program without threads to be had: pthread_create() answers EAGAIN, as under a full
// RLIMIT_NPROC or pids.max. For programs that link dlock_no_threads, which puts its own
// pthread_create() before the C library's.
#pragma once

#include <cstdint>

namespace dlock::testkit {

/// How many threads were asked for since the program's start.
std::uint64_t threads_asked_for() noexcept;

/// While one lives, no thread can be made by anybody in this program. They nest.
class NoThreads {
 public:
  NoThreads() noexcept;
  ~NoThreads();
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
};

/// The n-th thread from now on cannot be made (1: the next one); 0: all can.
void refuse_thread(std::uint64_t n) noexcept;

}  // namespace dlock::testkit
