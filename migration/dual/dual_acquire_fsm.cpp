// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_acquire_fsm.hpp"

#include <algorithm>

#include "core/fsm/acquire_fsm.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core::migration {

DualAcquireFsm::Step DualAcquireFsm::begin() const { return {Action::enter, kNever}; }

DualAcquireFsm::Step DualAcquireFsm::go(State state, Action what) {
  state_ = state;
  return {what, kNever};
}

DualAcquireFsm::Step DualAcquireFsm::on_entered(const Failure& failure, std::uint64_t floor,
                                                TimePoint now, std::uint64_t random) {
  if (error_) return fail(*error_);
  if (failure.error) {
    if (portable(failure.error) == errc::unavailable)
      return later(failure, Action::enter, now, random);
    failure_ = failure;
    return fail(portable(failure.error));
  }
  failure_ = {};
  unanswered_since_.reset();
  backoff_.reset();
  floor_ = floor;
  return first_lock();
}

DualAcquireFsm::Step DualAcquireFsm::first_lock() {
  if (phase_ == 2) return go(State::target, Action::lock_target);
  return go(State::source, Action::lock_source);
}

std::uint64_t DualAcquireFsm::min_token() const noexcept {
  // The other store's token, if there is one already.
  return std::max({floor_, source_token_, target_token_});
}

DualAcquireFsm::Step DualAcquireFsm::on_source(const Outcome& outcome, Good good, TimePoint now) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (!outcome.granted) return not_locked(outcome);
  source_token_ = outcome.token;
  if (phase_ == 0) {
    return go(State::settling, Action::settle);
  }
  return go(State::target, Action::lock_target);
}

DualAcquireFsm::Step DualAcquireFsm::on_target(const Outcome& outcome, Good good, TimePoint now) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (!outcome.granted) return not_locked(outcome);
  target_token_ = outcome.token;
  if (phase_ == 2) {
    return go(State::settling, Action::settle);
  }
  return go(State::raising, Action::raise_source);
}

DualAcquireFsm::Step DualAcquireFsm::on_raised(const RecordAnswer& answer, Good good, TimePoint now,
                                               std::uint64_t random) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  switch (answer.status) {
    case RecordStatus::done:
      unanswered_since_.reset();
      backoff_.reset();
      return go(State::settling, Action::settle);
    case RecordStatus::conflict:  // the store says that S's lock is no longer ours
      return start_anew(Good::half_lost, now);
    case RecordStatus::unavailable:
    case RecordStatus::unknown:  // raising twice does no harm
      return later(answer.failure, Action::raise_source, now, random);
    case RecordStatus::failed:
      break;
  }
  failure_ = answer.failure;
  return fail(portable(answer.failure.error));
}

DualAcquireFsm::Step DualAcquireFsm::on_settled(const Failure& failure, Good good, TimePoint now,
                                                std::uint64_t random) {
  if (error_) return fail(*error_);
  if (good != Good::yes) return start_anew(good, now);
  if (failure.error) {
    if (portable(failure.error) == errc::unavailable)
      return later(failure, Action::settle, now, random);
    return start_anew(Good::not_registered, now);
  }
  failure_ = {};
  granted_ = true;
  return go(State::finished, Action::finish);
}

DualAcquireFsm::Step DualAcquireFsm::on_woken(TimePoint now) {
  if (error_) return fail(*error_);
  if (now >= limits_.deadline) return fail(errc::unavailable);
  switch (after_pause_) {
    case Action::raise_source:
      return go(State::raising, after_pause_);
    case Action::settle:
      return go(State::settling, after_pause_);
    default:
      return go(State::entering, Action::enter);
  }
}

bool DualAcquireFsm::on_deadline() {
  if (limits_.once || state_ == State::source || state_ == State::target) return false;
  if (error_ || state_ == State::finished) return false;
  if (!failure_.error) failure_ = make_failure(errc::unavailable, std::string(kNoAnswer));
  return give_up(errc::unavailable);
}

// With wait 0 nobody is asked twice.
DualAcquireFsm::Step DualAcquireFsm::start_anew(Good good, TimePoint now) {
  source_token_ = 0;
  target_token_ = 0;
  failure_ = {};
  if (!limits_.once && now < limits_.deadline) return go(State::entering, Action::enter);
  if (good == Good::half_lost) return fail(errc::timed_out);
  failure_ = make_failure(errc::not_registered,
                          "the registration was over before the lock was granted: its renewals "
                          "were not answered in time, or somebody has taken it away");
  return fail(errc::not_registered);
}

DualAcquireFsm::Step DualAcquireFsm::not_locked(const Outcome& outcome) {
  failure_ = outcome.failure;
  return fail(outcome.error);
}

DualAcquireFsm::Step DualAcquireFsm::later(const Failure& why, Action what, TimePoint now,
                                           std::uint64_t random) {
  failure_ = why;
  if (!unanswered_since_) unanswered_since_ = now;
  const bool patient = limits_.retry.kind == RetryPolicy::Kind::forever;
  const auto out_of_patience = patient ? kNever : *unanswered_since_ + limits_.connect_timeout;
  const auto wait = limits_.once ? std::nullopt : backoff_.next(now, random);
  if (!wait || now >= out_of_patience || now >= limits_.deadline) return fail(errc::unavailable);
  state_ = State::pausing;
  after_pause_ = what;
  return {Action::pause, std::min({now + *wait, out_of_patience, limits_.deadline})};
}

bool DualAcquireFsm::give_up(errc error) {
  if (error_ || state_ == State::finished) return false;
  error_ = error;
  return true;
}

DualAcquireFsm::Step DualAcquireFsm::fail(errc error) {
  error_ = error;
  return go(State::finished, Action::finish);
}

}  // namespace dlock::core::migration
