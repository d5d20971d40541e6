// SPDX-License-Identifier: Apache-2.0
//
// UseBound: until when whoever has a lock may use it, whatever its store says (max_hold,
// progress_every). A moment on the local clock, read by everybody who asks how the lock stands: it
// is over on time also if nothing of ours runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

/// What an acquire asks for.
struct UseLimit {
  std::optional<std::chrono::milliseconds> max_hold{};
  std::optional<std::chrono::milliseconds> progress_every{};
  bool any() const noexcept { return max_hold || progress_every; }
};

/// Why the holder's time is over, not the claim's: it is given back when he has been told.
inline bool is_over_use(LossReason why) noexcept {
  return why == LossReason::max_hold || why == LossReason::no_progress;
}

/// Thread safety: all members from any thread; locks nothing.
class UseBound {
 public:
  /// Before anybody has the lock.
  void begin(const UseLimit& limit, TimePoint now) noexcept {
    if (limit.max_hold) last_.store(after(now, bounded(*limit.max_hold)));
    if (!limit.progress_every) return;
    const auto every = bounded(*limit.progress_every);
    every_.store(every.count());
    next_.store(after(now, every));
  }
  /// Of a lock that is not lost yet.
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

  std::atomic<Count> last_{kNever.time_since_epoch().count()};  ///< of max_hold
  std::atomic<Count> next_{kNever.time_since_epoch().count()};  ///< of progress
  std::atomic<Count> every_{0};
};

}  // namespace dlock::core
