// SPDX-License-Identifier: Apache-2.0
//
// UseBound: the time until which a user may use a lock, whatever its store says (max_hold,
// progress_every). It is a time on the local clock, and each read of the lock's state compares it.
// So the use ends on time even if no thread of dlock runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

/// The limits of an acquire.
struct UseLimit {
  std::optional<std::chrono::milliseconds> max_hold{};
  std::optional<std::chrono::milliseconds> progress_every{};
  bool any() const noexcept { return max_hold || progress_every; }
};

/// True: the user's time is over, not the claim's. The claim is released when the user was
/// notified.
inline bool is_over_use(LossReason why) noexcept {
  return why == LossReason::max_hold || why == LossReason::no_progress;
}

/// Thread safety: all members from any thread; locks nothing.
class UseBound {
 public:
  /// Called before a handle of the lock exists.
  void begin(const UseLimit& limit, TimePoint now) noexcept {
    if (limit.max_hold) last_.store(after(now, bounded(*limit.max_hold)));
    if (!limit.progress_every) return;
    const auto every = bounded(*limit.progress_every);
    every_.store(every.count());
    next_.store(after(now, every));
  }
  /// Called for a lock that is not lost.
  void progress(TimePoint now) noexcept {
    const Duration every(every_.load(std::memory_order_relaxed));
    if (every > Duration::zero()) next_.store(after(now, every), std::memory_order_release);
  }
  bool wants_progress() const noexcept { return every_.load(std::memory_order_relaxed) != 0; }
  /// kNever: it is not bounded.
  TimePoint until() const noexcept { return std::min(last(), next()); }
  /// none: it is not over.
  LossReason why(TimePoint now) const noexcept {
    if (now >= last()) return LossReason::max_hold;
    return now >= next() ? LossReason::no_progress : LossReason::none;
  }

 private:
  using Count = TimePoint::rep;
  /// A limit so long that the clock would overflow is none.
  static constexpr std::chrono::hours kLongest{24 * 365 * 10};

  static Duration bounded(std::chrono::milliseconds limit) noexcept {
    return limit >= kLongest ? Duration(kLongest) : Duration(limit);
  }
  static Count after(TimePoint now, Duration limit) noexcept {
    return (limit >= kLongest ? kNever : now + limit).time_since_epoch().count();
  }
  TimePoint last() const noexcept {
    return TimePoint(Duration(last_.load(std::memory_order_relaxed)));
  }
  TimePoint next() const noexcept {
    return TimePoint(Duration(next_.load(std::memory_order_acquire)));
  }

  std::atomic<Count> last_{kNever.time_since_epoch().count()};  ///< end of max_hold
  std::atomic<Count> next_{kNever.time_since_epoch().count()};  ///< end of progress_every
  std::atomic<Count> every_{0};
};

}  // namespace dlock::core
