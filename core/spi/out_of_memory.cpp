// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/out_of_memory.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace dlock::inline v0 {

// Not abort(): a signal handler of the application could call exit(), and a core file takes time in
// which the command of `dlock run` continues.
void end_out_of_memory() noexcept {
  static std::atomic_flag is_ending;  // memory may run out on several threads at once
  while (is_ending.test_and_set()) ::pause();
  constexpr std::string_view kLine =
      "dlock: out of memory; the process ends with status 71, so that it holds no lock\n";
  constexpr int kPatience_ms = 100;  // a full pipe must not keep the process
  pollfd polled{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&polled, 1, kPatience_ms) > 0) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  }
  ::_exit(kOutOfMemoryStatus);
}

void end_if_out_of_memory(const std::exception& error) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) end_out_of_memory();
}

void end_if_out_of_memory(const std::exception_ptr& thrown) noexcept {
  if (!thrown) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (...) {  // NOLINT(bugprone-empty-catch): another exception
  }
}

}  // namespace dlock::inline v0
