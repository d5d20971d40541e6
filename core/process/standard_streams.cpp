// SPDX-License-Identifier: Apache-2.0
#include "core/process/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace dlock::core {

// Not by number, which could replace a descriptor that another thread opens meanwhile: open()
// returns the lowest free number.
void fill_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_closed = ::fcntl(stream, F_GETFD) < 0 && errno == EBADF;
    if (!is_closed) continue;
    const int filled = ::open("/dev/null", O_RDWR);  // NOLINT: children expect it as well
    // Another thread has filled it.
    if (filled > STDERR_FILENO) ::close(filled);
  }
}

}  // namespace dlock::core
