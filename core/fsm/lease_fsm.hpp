// SPDX-License-Identifier: Apache-2.0
//
// LeaseFsm: whether a granted claim is still valid. Pure: (state, event, now) -> change.
//
// The rule: the local deadline is the end of the store's lease, counted from before the last
// request that it confirmed, less the drift margin (Chubby's lease and jeopardy: Burrows, OSDI
// 2006, section 2.8; here the client's state is per lock, and `lost` is final). A confirmation that
// arrives after the deadline is too late: the loss may have been reported already.
#pragma once

#include "dlock/spi/answers.hpp"

namespace dlock::core {

class LeaseFsm {
 public:
  enum class Change { none, suspect, held, lost };

  /// `retry_pause`: the least time between two renewals, of which the first failed. `now`: when the
  /// grant was confirmed.
  LeaseFsm(Validity validity, Duration margin, Duration retry_pause, TimePoint now);

  /// The holder stops its work this long after the last confirmation.
  void renew_within(Duration time) noexcept;
  /// Returns how long one renewal may take: a third of the time from a confirmation to the
  /// deadline, or to renew_within(). So a renewal that is lost leaves time for another one.
  Duration patience() const noexcept;

  /// Returns the time until which the lock is valid; kNever without a lease.
  TimePoint deadline() const noexcept { return deadline_; }
  /// When to send the next renewal; kNever while one is under way, without a lease, and when lost.
  TimePoint renew_at() const noexcept;
  bool is_lost() const noexcept { return state_ == State::lost; }
  LossReason reason() const noexcept { return reason_; }

  void on_extend_sent(TimePoint now) noexcept {
    in_flight_ = true;
    sent_ = now;
  }
  Change on_extended(Validity validity, TimePoint now);
  Change on_extend_failed(TimePoint now);
  Change on_gone(LossReason reason);
  Change on_link_down();
  Change on_link_up(TimePoint now);
  /// Time passed.
  Change on_time(TimePoint now);

 private:
  enum class State { held, suspect, lost };
  Change lose(LossReason reason);
  void confirm(TimePoint renew_at, TimePoint now) noexcept;

  Duration margin_;
  Duration retry_pause_;
  TimePoint deadline_;
  TimePoint renew_at_;
  TimePoint confirmed_{};
  TimePoint sent_{};
  Duration within_ = Duration::max();
  bool in_flight_ = false;
  bool link_up_ = true;
  State state_ = State::held;
  LossReason reason_ = LossReason::none;
};

/// The moment `validity` ends for us.
TimePoint local_deadline(const Validity& validity, Duration margin);

/// 1 % of the lease, at least 20 ms: two clocks may drift apart, and our own timers run late.
Duration default_drift_margin(Duration lease);

}  // namespace dlock::core
