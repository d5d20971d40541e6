// SPDX-License-Identifier: Apache-2.0
//
// The policy for a failed allocation. In the caller's thread std::bad_alloc propagates as any
// exception. In the library's work it ends the process: on the library's threads, in the loop that
// a caller's thread runs, and in functions that release a lock. A dead process holds nothing.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <exception>
#include <new>
#include <utility>

namespace dlock::inline v0 {

/// Exit status of a process that end_out_of_memory() ends: EX_OSERR of sysexits.h.
inline constexpr int kOutOfMemoryStatus = 71;

/// Writes one line to standard error and ends the process with kOutOfMemoryStatus. Calls no exit
/// handler and no signal handler, writes no core file, and allocates nothing.
/// Thread safety: any thread.
[[noreturn]] void end_out_of_memory() noexcept;

/// Ends the process if `error` is a std::bad_alloc. For handlers that catch more than they expect.
void end_if_out_of_memory(const std::exception& error) noexcept;
void end_if_out_of_memory(const std::exception_ptr& thrown) noexcept;

/// Returns work(). Ends the process if it throws std::bad_alloc. Passes on other exceptions.
template <class Work>
decltype(auto) or_end(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  }
}

}  // namespace dlock::inline v0
