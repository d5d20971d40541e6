// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/descriptor_limit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

namespace dlock::local {

bool raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::string descriptor_limit_text() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return fmt::format(
      "each lock held or waited for needs a descriptor, and this process may have {} "
      "(RLIMIT_NOFILE, hard limit {}): raise the hard limit (ulimit -Hn, LimitNOFILE= of systemd)",
      limit.rlim_cur, limit.rlim_max);
}

}  // namespace dlock::local
