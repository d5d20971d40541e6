// SPDX-License-Identifier: Apache-2.0
//
// Decides when a connection may be tried again. The first pauses are short and grow. A connection
// that lived for some time is replaced at once. In the long run there is at most one try per
// second, whatever the server answers. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::redis {

class Pace {
 public:
  /// A connection that lived this long was a good one.
  static constexpr std::chrono::seconds kSettled{1};

  /// The earliest time of the next try. A time in the past: now.
  TimePoint next() const noexcept { return next_; }
  /// Tries since the last good connection.
  int failures() const noexcept { return failures_; }

  /// A try begins.
  void begin(TimePoint now) noexcept;
  /// The try has failed.
  void failed(TimePoint now, std::uint64_t dice) noexcept;
  /// The connection has ended after `lifetime`.
  void ended(TimePoint now, Duration lifetime, std::uint64_t dice) noexcept;
  /// Delays the next try until `when` at least.
  void wait_until(TimePoint when) noexcept;

 private:
  TimePoint earliest(TimePoint now) const noexcept;

  TimePoint next_{};
  TimePoint spent_{};  ///< each try moves it by one second; it may be ahead of the clock by the
                       ///< burst
  Duration pause_{};
  int failures_ = 0;
};

}  // namespace dlock::redis
