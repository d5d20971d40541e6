// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_client.hpp"

#include <algorithm>

#include "core/planted.hpp"
#include "core/spi/error.hpp"

namespace dlock::core::migration {

DualClient::Step DualClient::begin() const { return {Do::enter, kNever}; }

DualClient::Step DualClient::go(State state, Do what) {
  state_ = state;
  return {what, kNever};
}

DualClient::Step DualClient::on_entered(const Failure& failure, std::uint64_t floor, TimePoint now,
                                        std::uint64_t dice) {
  if (error_) return fail(*error_);
  if (failure.error) {
    if (portable(failure.error) == errc::unavailable) return later(failure, Do::enter, now, dice);
    failure_ = failure;
    return fail(portable(failure.error));
  }
  failure_ = {};
  unanswered_since_.reset();
  backoff_.reset();
  floor_ = DLOCK_PLANTED("dual_no_floor_at_opening") ? 0 : floor;
  return first_lock(dice);
}

DualClient::Step DualClient::first_lock(std::uint64_t dice) {
  target_first_ = phase_ == 1 && DLOCK_PLANTED("dual_target_first") && dice % 2 == 1;
  if (phase_ == 2 || target_first_) return go(State::target, Do::lock_target);
  return go(State::source, Do::lock_source);
}

std::uint64_t DualClient::min_token() const noexcept {
  if (state_ == State::target && DLOCK_PLANTED("dual_target_without_min_token")) return 0;
  // The other store's token, if there is one already.
  return std::max({floor_, source_token_, target_token_});
}

DualClient::Step DualClient::on_source(const Outcome& outcome, Good good, TimePoint now) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (!outcome.granted) return not_locked(outcome);
  source_token_ = outcome.token;
  if (phase_ == 0 || DLOCK_PLANTED("dual_phase_one_skipped")) {
    return go(State::settling, Do::settle);
  }
  if (target_first_) return go(State::raising, Do::raise_source);
  return go(State::target, Do::lock_target);
}

DualClient::Step DualClient::on_target(const Outcome& outcome, Good good, TimePoint now) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (!outcome.granted) return not_locked(outcome);
  target_token_ = outcome.token;
  if (target_first_) return go(State::source, Do::lock_source);
  if (phase_ == 2 || DLOCK_PLANTED("dual_source_not_raised")) {
    return go(State::settling, Do::settle);
  }
  return go(State::raising, Do::raise_source);
}

DualClient::Step DualClient::on_raised(const RecordAnswer& answer, Good good, TimePoint now,
                                       std::uint64_t dice) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  switch (answer.status) {
    case RecordStatus::done:
      unanswered_since_.reset();
      backoff_.reset();
      return go(State::settling, Do::settle);
    case RecordStatus::conflict:  // the store says that S's lock is no longer ours
      return start_anew(Good::half_lost, now);
    case RecordStatus::unavailable:
    case RecordStatus::unknown:  // raising twice does no harm
      return later(answer.failure, Do::raise_source, now, dice);
    case RecordStatus::failed:
      break;
  }
  failure_ = answer.failure;
  return fail(portable(answer.failure.error));
}

DualClient::Step DualClient::on_settled(const Failure& failure, Good good, TimePoint now,
                                        std::uint64_t dice) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (failure.error) {
    if (portable(failure.error) == errc::unavailable) return later(failure, Do::settle, now, dice);
    return start_anew(Good::not_registered, now);
  }
  failure_ = {};
  granted_ = true;
  return go(State::finished, Do::finish);
}

DualClient::Step DualClient::on_woken(TimePoint now) {
  if (error_) return fail(*error_);
  if (now >= limits_.deadline) return fail(errc::unavailable);
  switch (after_pause_) {
    case Do::raise_source:
      return go(State::raising, after_pause_);
    case Do::settle:
      return go(State::settling, after_pause_);
    default:
      return go(State::entering, Do::enter);
  }
}

bool DualClient::on_deadline() {
  if (limits_.once || state_ == State::source || state_ == State::target) return false;
  return give_up(unanswered_since_ ? errc::unavailable : errc::timed_out);
}

// With wait 0 nobody is asked twice.
DualClient::Step DualClient::start_anew(Good good, TimePoint now) {
  source_token_ = 0;
  target_token_ = 0;
  failure_ = {};
  if (!limits_.once && now < limits_.deadline) return go(State::entering, Do::enter);
  if (good == Good::half_lost) return fail(errc::timed_out);
  failure_ = make_failure(errc::not_registered,
                          "the registration was over before the lock was granted: its renewals "
                          "were not answered in time, or somebody has taken it away");
  return fail(errc::not_registered);
}

DualClient::Step DualClient::not_locked(const Outcome& outcome) {
  failure_ = outcome.failure;
  return fail(outcome.error);
}

DualClient::Step DualClient::later(const Failure& why, Do what, TimePoint now, std::uint64_t dice) {
  failure_ = why;
  if (!unanswered_since_) unanswered_since_ = now;
  const bool patient = limits_.retry.kind == RetryPolicy::Kind::forever;
  const auto out_of_patience = patient ? kNever : *unanswered_since_ + limits_.connect_timeout;
  const auto wait = limits_.once ? std::nullopt : backoff_.next(now, dice);
  if (!wait || now >= out_of_patience || now >= limits_.deadline) return fail(errc::unavailable);
  state_ = State::pausing;
  after_pause_ = what;
  return {Do::pause, std::min({now + *wait, out_of_patience, limits_.deadline})};
}

bool DualClient::give_up(errc error) {
  if (error_ || state_ == State::finished) return false;
  error_ = error;
  return true;
}

DualClient::Step DualClient::fail(errc error) {
  error_ = error;
  return go(State::finished, Do::finish);
}

}  // namespace dlock::core::migration
