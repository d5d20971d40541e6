// SPDX-License-Identifier: Apache-2.0
//
// When a connection may be tried again. The first pauses are short and grow; what was connected
// for some time is tried again at once. Whatever the server answers, over time it is one try a
// second at most. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "dlock/clock.hpp"

namespace dlock::redis {

class Pace {
 public:
  /// A connection that lived this long was a good one.
  static constexpr std::chrono::seconds kSettled{1};

  /// Not before it. The past: now.
  TimePoint next() const noexcept { return next_; }
  /// Tries since the last good connection.
  int failures() const noexcept { return failures_; }

  /// A try begins.
  void begin(TimePoint now) noexcept;
  /// It came to nothing.
  void failed(TimePoint now, std::uint64_t dice) noexcept;
  /// What it made has ended after `lifetime`.
  void ended(TimePoint now, Duration lifetime, std::uint64_t dice) noexcept;
  /// Not before `when` either.
  void wait_until(TimePoint when) noexcept;

 private:
  TimePoint earliest(TimePoint now) const noexcept;

  TimePoint next_{};
  TimePoint spent_{};  ///< each try pushes it a second on; it may be so many tries ahead of us
  Duration pause_{};
  int failures_ = 0;
};

}  // namespace dlock::redis
