// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/net/write_pace.hpp"

#include <algorithm>
#include <utility>

namespace dlock::inline v0 {

bool WritePace::asked(std::size_t unanswered, std::size_t unwritten) noexcept {
  if (unanswered == 1) crowd_ = std::exchange(most_, 0);
  most_ = std::max(most_, unanswered);
  return unwritten == unanswered && crowd_ > 0 && unwritten >= crowd_ / 2;
}

}  // namespace dlock::inline v0
