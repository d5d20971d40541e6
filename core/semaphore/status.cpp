// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "dlock/lock_status.hpp"

namespace dlock::inline v0 {

std::uint64_t SemaphoreStatus::held() const noexcept {
  return std::accumulate(
      holders.begin(), holders.end(), std::uint64_t{0},
      [](std::uint64_t sum, const PermitHolder& holder) { return sum + holder.permits; });
}

std::uint64_t SemaphoreStatus::free() const noexcept {
  const std::uint64_t all = limit.value_or(0);
  return all - std::min(all, held());
}

}  // namespace dlock::inline v0
