// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/lease.hpp"

namespace dlock::memcached {

std::time_t exptime_of(std::chrono::milliseconds lease) {
  return static_cast<std::time_t>(std::chrono::ceil<std::chrono::seconds>(lease).count() + 1);
}

}  // namespace dlock::memcached
