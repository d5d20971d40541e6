// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/token.hpp"

#include <algorithm>

namespace dlock::memcached {

std::uint64_t token_seed(std::int64_t wall_clock_us, std::uint64_t min_token) {
  const auto clock = static_cast<std::uint64_t>(std::max<std::int64_t>(wall_clock_us, 1));
  return std::max(std::min(clock, kHighestSeed), min_token + 1);
}

std::time_t token_exptime(std::uint64_t value, std::int64_t wall_clock_us) {
  return value > static_cast<std::uint64_t>(std::max<std::int64_t>(wall_clock_us, 1))
             ? 0
             : kTokenExptime;
}

std::uint64_t token_raise(std::uint64_t token, std::uint64_t min_token) {
  return token > min_token ? 0 : min_token - token + 1;
}

}  // namespace dlock::memcached
