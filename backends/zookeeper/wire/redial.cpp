// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/redial.hpp"

#include <algorithm>
#include <utility>

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEach{1600};
/// Tries per server that may be made earlier.
constexpr int kAtOnce = 7;
constexpr milliseconds kShortest{20};

}  // namespace

// A short session has to be saved sooner.
Redial::Redial(Duration session, std::size_t servers, TimePoint now, Duration least, Spent spent)
    : longest_(std::clamp<Duration>(session / 8, milliseconds(50), milliseconds(1500))),
      least_(least),
      servers_(servers),
      missing_(now),
      spent_(spent ? std::move(spent) : std::make_shared<TimePoint>(now)) {}

void Redial::missing(TimePoint now) noexcept {
  missing_ = now;
  tries_ = 0;
}

void Redial::tried(TimePoint now) noexcept {
  last_ = now;
  ++tries_;
  *spent_ = std::max(*spent_, now) + cost();
}

TimePoint Redial::next() const noexcept {
  if (last_ == TimePoint{}) return missing_;
  // The first round through the list has no pause. Then the pause is the time since the link was
  // lost.
  Duration pause{};
  if (tries_ > 0 && tries_ % servers_ == 0) {
    pause = std::max(least_, std::clamp<Duration>(last_ - missing_, kShortest, longest_));
  }
  return std::max(last_ + pause, *spent_ - kAtOnce * kEach + cost());
}

Duration Redial::cost() const noexcept { return kEach / static_cast<int>(servers_); }

}  // namespace dlock::zookeeper
