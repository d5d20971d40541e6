// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_acquire_fsm.hpp"

#include <algorithm>

#include "core/fsm/acquire_fsm.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core::migration {
namespace {

/// With wait 0 each store is asked once. A gate that turns meanwhile is followed that often.
constexpr int kMostStartsAtOnce = 3;

}  // namespace

LeasedAcquireFsm::Step LeasedAcquireFsm::go(State state, Action what) {
  state_ = state;
  return {what, false, kNever};
}

LeasedAcquireFsm::Step LeasedAcquireFsm::begin() { return go(State::reading, Action::read); }

std::uint64_t LeasedAcquireFsm::highest() const noexcept {
  return std::max(source_token_.value_or(0), target_token_.value_or(0));
}

// The locks that it has are the first ones of the view, or all of them.
bool LeasedAcquireFsm::fits(const View& view) const noexcept {
  const bool both = has_source() && has_target();
  if (both) return is_both(view.state);
  if (has_source()) return is_source_first(view.state);
  if (has_target()) return !is_source_first(view.state);
  return true;
}

bool LeasedAcquireFsm::is_in_vain(const View& view) const noexcept {
  if (!is_waiting_for_lock()) return false;
  const bool in_source = state_ == State::source;
  const bool is_first = !has_source() && !has_target();
  if (view.floor != floor_) return true;
  if (is_first) return in_source != is_source_first(view.state);
  // The second lock: it has the other one.
  return !fits(view) || !is_both(view.state);
}

LeasedAcquireFsm::Step LeasedAcquireFsm::on_read(const Failure& failure, const Facts& facts) {
  if (error_) return fail(*error_);
  if (failure.error) {
    if (portable(failure.error) == errc::unavailable) return later(failure, Action::read, facts);
    failure_ = failure;
    return fail(portable(failure.error));
  }
  failure_ = {};
  unanswered_since_.reset();
  backoff_.reset();
  return next(facts);
}

LeasedAcquireFsm::Step LeasedAcquireFsm::on_locked(bool in_source, const Outcome& outcome,
                                                   const Facts& facts) {
  if (error_) return fail(*error_);
  if (outcome.granted) {
    (in_source ? source_token_ : target_token_) = outcome.token;
    return next(facts);
  }
  // The wait was ended because the other lock was lost, or because the gate has turned: the lock
  // that it has may be enough now.
  const bool is_void = facts.is_half_lost || (facts.view && is_in_vain(*facts.view));
  if (is_void) return next(facts);
  failure_ = outcome.failure;
  return fail(outcome.error);
}

LeasedAcquireFsm::Step LeasedAcquireFsm::on_raised(const Failure& failure, const Facts& facts) {
  if (error_) return fail(*error_);
  if (!failure.error) return next(facts);
  if (portable(failure.error) == errc::unavailable) return later(failure, Action::raise, facts);
  failure_ = failure;
  return fail(portable(failure.error));
}

LeasedAcquireFsm::Step LeasedAcquireFsm::on_woken(const Facts& facts) {
  if (error_) return fail(*error_);
  if (facts.now >= limits_.deadline) return fail(errc::unavailable);
  if (after_pause_ == Action::read) return go(State::reading, Action::read);
  return next(facts);
}

// By the newest reading: what it has must be what it would have been granted under that.
LeasedAcquireFsm::Step LeasedAcquireFsm::next(const Facts& facts) {
  if (facts.is_half_lost) return start_anew(facts);
  if (!facts.view) return go(State::reading, Action::read);
  const auto& view = *facts.view;
  const bool is_below = (source_token_ && *source_token_ <= view.floor) ||
                        (target_token_ && *target_token_ <= view.floor);
  if (!fits(view) || is_below) return start_anew(facts);
  floor_ = view.floor;
  const bool first_in_source = is_source_first(view.state);
  const bool has_first = first_in_source ? has_source() : has_target();
  if (!has_first) {
    return first_in_source ? go(State::source, Action::lock_source)
                           : go(State::target, Action::lock_target);
  }
  if (is_both(view.state) && !(has_source() && has_target())) {
    return first_in_source ? go(State::target, Action::lock_target)
                           : go(State::source, Action::lock_source);
  }
  const bool is_over = view.state == LeasedState::final_ || view.state == LeasedState::ended;
  if (highest() > view.ceiling && !is_over) return go(State::raising, Action::raise);
  failure_ = {};
  granted_ = true;
  is_source_shown_ = first_in_source;
  return go(State::finished, Action::finish);
}

LeasedAcquireFsm::Step LeasedAcquireFsm::start_anew(const Facts& facts) {
  source_token_.reset();
  target_token_.reset();
  failure_ = {};
  ++starts_;
  const bool may_start = limits_.once ? starts_ < kMostStartsAtOnce : facts.now < limits_.deadline;
  auto step = may_start ? go(State::reading, Action::read) : fail(errc::timed_out);
  step.gives_back = true;
  return step;
}

LeasedAcquireFsm::Step LeasedAcquireFsm::later(const Failure& why, Action what,
                                               const Facts& facts) {
  failure_ = why;
  const auto now = facts.now;
  if (!unanswered_since_) unanswered_since_ = now;
  const bool is_patient = limits_.retry.kind == RetryPolicy::Kind::forever;
  const auto out_of_patience = is_patient ? kNever : *unanswered_since_ + limits_.connect_timeout;
  const auto wait = limits_.once ? std::nullopt : backoff_.next(now, facts.random);
  if (!wait || now >= out_of_patience || now >= limits_.deadline) return fail(errc::unavailable);
  state_ = State::pausing;
  after_pause_ = what;
  return {Action::pause, false, std::min({now + *wait, out_of_patience, limits_.deadline})};
}

bool LeasedAcquireFsm::on_deadline() {
  if (limits_.once || is_waiting_for_lock()) return false;
  if (error_ || state_ == State::finished) return false;
  if (!failure_.error) failure_ = make_failure(errc::unavailable, std::string(kNoAnswer));
  return give_up(errc::unavailable);
}

bool LeasedAcquireFsm::give_up(errc error) {
  if (error_ || state_ == State::finished) return false;
  error_ = error;
  return true;
}

LeasedAcquireFsm::Step LeasedAcquireFsm::fail(errc error) {
  error_ = error;
  return go(State::finished, Action::finish);
}

}  // namespace dlock::core::migration
