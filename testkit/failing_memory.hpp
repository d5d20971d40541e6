// SPDX-License-Identifier: Apache-2.0
//
// A program in which memory can run out at a chosen moment: allocations are counted, and the n-th
// one fails, once. For programs that link dlock_failing_memory, which puts its own operator new and
// malloc() before the C library's.
#pragma once

#include <cstdint>

namespace dlock::testkit {

/// Which allocations are meant.
enum class Memory {
  cpp,  ///< operator new, and aligned_alloc(), from which Asio takes its own
  all,  ///< malloc() of C libraries, too
};

/// From now on allocations are counted, and the n-th one fails (1: the next one; 0: none).
void arm_memory(Memory which, std::uint64_t n) noexcept;
/// Nothing fails or is counted any more; how many there were.
std::uint64_t disarm_memory() noexcept;
/// Whether one has failed since memory was armed.
bool memory_has_failed() noexcept;

/// The threads that run now are neither counted nor made to fail, the calling one excepted.
void spare_present_threads() noexcept;

/// While one lives, the calling thread is spared as well.
class Spared {
 public:
  Spared() noexcept;
  ~Spared();
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
};

/// The allocation that failed prints its stack to standard error, and so does an abort().
void show_failures() noexcept;

}  // namespace dlock::testkit
