// SPDX-License-Identifier: Apache-2.0
#include "backends/local/rules/pace.hpp"

#include <algorithm>

namespace dlock::local {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kShortestPause = milliseconds(10);
constexpr auto kLongestPause = milliseconds(250);
constexpr auto kPausePerTicket = microseconds(2500);

}  // namespace

Duration pause_untold(std::uint64_t ahead) noexcept {
  constexpr std::uint64_t kFar = kLongestPause / kPausePerTicket;
  const auto pause = kPausePerTicket * static_cast<std::int64_t>(std::min(ahead, kFar));
  return std::clamp<Duration>(pause, kShortestPause, kLongestPause);
}

}  // namespace dlock::local
