// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/server_clock.hpp"

#include <chrono>

namespace dlock::redis {

std::uint64_t ServerClock::at(TimePoint when) const noexcept {
  if (!known_ || when == kNever) return kNoLimit;
  const auto later =
      std::chrono::duration_cast<std::chrono::microseconds>(when - known_->asked).count();
  if (later <= 0) return known_->us;
  return known_->us + static_cast<std::uint64_t>(later);
}

}  // namespace dlock::redis
