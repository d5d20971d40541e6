// SPDX-License-Identifier: Apache-2.0
#include "core/process/exhausted.hpp"

#include <fmt/format.h>

#include "dlock/spi/error.hpp"

namespace dlock::core {

Failure out_of_threads(const std::error_code& error) {
  return make_failure(
      errc::unavailable,
      fmt::format("no thread can be made ({}): raise the limit on the processes of this user "
                  "(RLIMIT_NPROC, ulimit -u) or of this container (pids.max), or end some",
                  error.message()));
}

Failure out_of_descriptors(const std::error_code& error) {
  return make_failure(
      errc::unavailable,
      fmt::format("no descriptor can be opened ({}): raise the limit of this process "
                  "(RLIMIT_NOFILE, ulimit -n) or of the system (fs.file-max), or close some",
                  error.message()));
}

bool is_out_of_descriptors(const std::error_code& error) noexcept {
  return error == std::errc::too_many_files_open ||
         error == std::errc::too_many_files_open_in_system;
}

}  // namespace dlock::core
