// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/lease.hpp"
#include "core/planted.hpp"

namespace dlock::memcached {

std::time_t exptime_of(std::chrono::milliseconds lease) {
  if (DLOCK_PLANTED("memcached_exptime_not_rounded_up")) {
    return std::chrono::floor<std::chrono::seconds>(lease).count();
  }
  return static_cast<std::time_t>(std::chrono::ceil<std::chrono::seconds>(lease).count() + 1);
}

}  // namespace dlock::memcached
