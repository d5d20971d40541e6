// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/pace.hpp"

#include <algorithm>

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstPause = milliseconds(10);
constexpr Duration kLongestPause = seconds(1);
/// In the long run one try per period.
constexpr Duration kPeriod = seconds(1);
/// This number of tries may follow each other at once.
constexpr int kBurst = 5;

}  // namespace

void Pace::begin(TimePoint now) noexcept {
  spent_ = std::max(spent_, now) + kPeriod;
  next_ = earliest(now);
}

void Pace::failed(TimePoint now, std::uint64_t dice) noexcept {
  pause_ = std::min(kFirstPause * (1 << std::min(failures_, 10)), kLongestPause);
  // The random part keeps many clients from retrying at the same time.
  pause_ +=
      Duration(static_cast<std::int64_t>(dice % static_cast<std::uint64_t>(pause_.count() / 4)));
  ++failures_;
  next_ = std::max(now + pause_, earliest(now));
}

void Pace::ended(TimePoint now, Duration lifetime, std::uint64_t dice) noexcept {
  if (lifetime < std::max<Duration>(kSettled, pause_)) return failed(now, dice);
  failures_ = 0;
  pause_ = {};
  next_ = earliest(now);
}

void Pace::wait_until(TimePoint when) noexcept { next_ = std::max(next_, when); }

TimePoint Pace::earliest(TimePoint now) const noexcept {
  return std::max(now, spent_ - kBurst * kPeriod);
}

}  // namespace dlock::redis
