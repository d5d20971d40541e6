// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/acquire_fsm.hpp"

#include <algorithm>

#include "dlock/spi/error.hpp"

namespace dlock::core {
namespace {

ClaimAnswer late_grant() {
  ClaimAnswer answer;
  answer.failure =
      make_failure(errc::unavailable, "the grant arrived so late that its lease was over by then");
  return answer;
}

}  // namespace

AcquireFsm::Step AcquireFsm::begin(TimePoint now) {
  begun_ = now;
  return claim(now);
}

AcquireFsm::Step AcquireFsm::claim(TimePoint now) {
  state_ = State::claiming;
  sent_ = now;
  return {Action::claim, kNever};
}

AcquireFsm::Step AcquireFsm::on_answer(const ClaimAnswer& answer, bool usable, TimePoint now,
                                       std::uint64_t random) {
  switch (answer.status) {
    case ClaimStatus::granted:
      may_exist_ = true;
      if (error_) return fail(*error_);
      // The grant arrived too late to be valid: ask for its state. The store does answer.
      if (!usable) {
        unreachable_since_.reset();
        sent_ = now;
        return try_again(late_grant(), now, random);
      }
      granted_ = true;
      state_ = State::finished;
      return {Action::finish, kNever};
    case ClaimStatus::waiting:
    case ClaimStatus::busy:
      // `busy` leaves nothing, but an earlier request of unknown outcome may have.
      may_exist_ = answer.status == ClaimStatus::waiting || last_unknown_.has_value();
      answered_ = true;
      unreachable_since_.reset();
      backoff_.reset();
      failure_ = {};
      if (error_) return fail(*error_);
      if (limits_.once || now >= limits_.deadline) return fail(errc::timed_out);
      state_ = State::waiting;
      return {Action::wait, limits_.deadline};
    case ClaimStatus::sealed:
      may_exist_ = true;
      if (error_) return fail(*error_);
      failure_ = answer.failure;
      return fail(answer.failure.error ? portable(answer.failure.error) : errc::moving);
    case ClaimStatus::unknown:
      may_exist_ = true;
      last_unknown_ = now;
      return try_again(answer, now, random);
    case ClaimStatus::unavailable:
      return try_again(answer, now, random);
    case ClaimStatus::gate_changed:  // for claims under a gate, which end with it
    case ClaimStatus::failed:
      break;
  }
  failure_ = answer.failure;
  return fail(error_ ? *error_ : portable(answer.failure.error));
}

AcquireFsm::Step AcquireFsm::on_refused_grant(Failure why) {
  may_exist_ = true;
  if (error_) return fail(*error_);
  failure_ = std::move(why);
  return fail(portable(failure_.error));
}

AcquireFsm::Step AcquireFsm::try_again(const ClaimAnswer& answer, TimePoint now,
                                       std::uint64_t random) {
  // The failure was seen after the wait was over.
  if (answered_ && !error_ && now >= limits_.deadline) return fail(errc::timed_out);
  answered_ = false;
  failure_ = answer.failure;
  if (error_) return fail(*error_);
  if (!unreachable_since_) unreachable_since_ = sent_;
  const bool patient = limits_.retry.kind == RetryPolicy::Kind::forever;
  const auto out_of_patience = patient ? kNever : *unreachable_since_ + limits_.connect_timeout;
  const auto pause = limits_.once ? std::nullopt : backoff_.next(now, random);
  if (!pause || now >= out_of_patience || now >= limits_.deadline) return fail(errc::unavailable);
  state_ = State::pausing;
  return {Action::pause, std::min({now + *pause, limits_.deadline, out_of_patience})};
}

AcquireFsm::Step AcquireFsm::on_woken(TimePoint now, const Trouble& trouble) {
  if (error_) return fail(*error_);
  if (now >= limits_.deadline) return fail(out_of_time(trouble));
  return claim(now);
}

errc AcquireFsm::error_at_deadline(const Trouble& trouble) const noexcept {
  const bool failed_since = trouble.failure.error && trouble.since < limits_.deadline;
  return answered_ && !failed_since ? errc::timed_out : errc::unavailable;
}

errc AcquireFsm::out_of_time(const Trouble& trouble) {
  const auto error = error_at_deadline(trouble);
  if (error == errc::unavailable && trouble.failure.error) failure_ = trouble.failure;
  return error;
}

TimePoint AcquireFsm::first_answer_until(const Trouble& trouble) const noexcept {
  const bool is_first = state_ == State::claiming && !answered_ && !unreachable_since_;
  const bool goes_on = is_first && !error_ && !limits_.once && !trouble.failure.error;
  return goes_on ? begun_ + kFirstAnswer : TimePoint::min();
}

bool AcquireFsm::on_cancel() { return give_up(errc::cancelled); }

bool AcquireFsm::on_closed() { return give_up(errc::closed); }

bool AcquireFsm::on_deadline(const Trouble& trouble) {
  if (limits_.once || error_ || state_ == State::finished) return false;
  return give_up(out_of_time(trouble));
}

bool AcquireFsm::on_out_of_reach(const Failure& why) {
  if (limits_.retry.kind == RetryPolicy::Kind::forever) return false;
  failure_ = why;
  return give_up(errc::unavailable);
}

bool AcquireFsm::give_up(errc error) {
  if (error_ || state_ == State::finished) return false;
  error_ = error;
  return state_ == State::claiming;
}

AcquireFsm::Step AcquireFsm::fail(errc error) {
  error_ = error;
  state_ = State::finished;
  return {Action::finish, kNever};
}

}  // namespace dlock::core
