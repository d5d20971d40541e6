// SPDX-License-Identifier: Apache-2.0
//
// Decides how often a connection that does not last is tried again: at once after one that lasted,
// then with doubling pauses, however each try ends. A server that answers "too many connections",
// or closes each new connection, is asked about once in two seconds. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "dlock/clock.hpp"

namespace dlock::memcached {

class Pacer {
 public:
  bool may_try(TimePoint now) const noexcept { return now >= last_ + pause_; }

  void tried(TimePoint now) noexcept {
    // A connection that lasted, or a long time without one, resets the count.
    if (now - last_ >= kLived) tries_ = 0;
    last_ = now;
    pause_ = tries_ == 0 ? Duration(0) : std::min<Duration>(kFirst * (1 << (tries_ - 1)), kLongest);
    if (tries_ < kMost) ++tries_;
  }

 private:
  static constexpr std::chrono::milliseconds kFirst{200};
  static constexpr std::chrono::seconds kLongest{2};
  static constexpr std::chrono::seconds kLived{10};
  static constexpr int kMost = 6;

  TimePoint last_{};
  Duration pause_{0};
  int tries_ = 0;
};

}  // namespace dlock::memcached
