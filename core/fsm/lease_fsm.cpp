// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/lease_fsm.hpp"

#include <algorithm>

namespace dlock::core {

TimePoint local_deadline(const Validity& validity, Duration margin) {
  return validity.until == kNever ? kNever : validity.until - margin;
}

Duration default_drift_margin(Duration lease) {
  return std::max<Duration>(lease / 100, std::chrono::milliseconds(20));
}

LeaseFsm::LeaseFsm(Validity validity, Duration margin, Duration retry_pause, TimePoint now)
    : margin_(margin),
      retry_pause_(retry_pause),
      deadline_(local_deadline(validity, margin)),
      renew_at_(validity.renew_at) {
  confirm(validity.renew_at, now);
}

void LeaseFsm::confirm(TimePoint renew_at, TimePoint now) noexcept {
  confirmed_ = now;
  renew_at_ = renew_at == kNever ? kNever : std::min(renew_at, now + patience());
}

void LeaseFsm::renew_within(Duration time) noexcept {
  within_ = time;
  if (renew_at_ != kNever) renew_at_ = std::min(renew_at_, confirmed_ + patience());
}

Duration LeaseFsm::patience() const noexcept {
  const auto whole = deadline_ == kNever ? within_ : std::min(deadline_ - confirmed_, within_);
  return std::max(whole / 3, Duration::zero());
}

TimePoint LeaseFsm::renew_at() const noexcept {
  return in_flight_ || state_ == State::lost ? kNever : renew_at_;
}

LeaseFsm::Change LeaseFsm::on_extended(Validity validity, TimePoint now) {
  in_flight_ = false;
  if (const auto change = on_time(now); change == Change::lost || is_lost()) return change;
  deadline_ = std::max(deadline_, local_deadline(validity, margin_));
  confirm(validity.renew_at, now);
  if (state_ == State::suspect && link_up_) {
    state_ = State::held;
    return Change::held;
  }
  return Change::none;
}

LeaseFsm::Change LeaseFsm::on_extend_failed(TimePoint now) {
  in_flight_ = false;
  if (const auto change = on_time(now); change == Change::lost || is_lost()) return change;
  renew_at_ = std::max(now, sent_ + retry_pause_);
  if (state_ == State::suspect) return Change::none;
  state_ = State::suspect;
  return Change::suspect;
}

LeaseFsm::Change LeaseFsm::on_gone(LossReason reason) {
  in_flight_ = false;
  return is_lost() ? Change::none : lose(reason);
}

LeaseFsm::Change LeaseFsm::on_link_down() {
  link_up_ = false;
  if (state_ != State::held || deadline_ == kNever) return Change::none;
  state_ = State::suspect;
  return Change::suspect;
}

// The link alone proves nothing: held again only when a renewal was confirmed, so ask at once.
LeaseFsm::Change LeaseFsm::on_link_up(TimePoint now) {
  link_up_ = true;
  if (state_ == State::suspect) renew_at_ = now;
  return Change::none;
}

LeaseFsm::Change LeaseFsm::on_time(TimePoint now) {
  return !is_lost() && now >= deadline_ ? lose(LossReason::expired) : Change::none;
}

LeaseFsm::Change LeaseFsm::lose(LossReason reason) {
  state_ = State::lost;
  reason_ = reason;
  return Change::lost;
}

}  // namespace dlock::core
