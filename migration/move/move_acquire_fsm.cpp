// SPDX-License-Identifier: Apache-2.0
#include "migration/move/move_acquire_fsm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/fsm/acquire_fsm.hpp"
#include "dlock/spi/error.hpp"
#include "migration/move/steps.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {
namespace {

bool leads_to_target(MoveState state) {
  return state == MoveState::moved || state == MoveState::final_;
}

}  // namespace

MoveAcquireFsm::Step MoveAcquireFsm::begin() { return lock_source(); }

MoveAcquireFsm::Step MoveAcquireFsm::lock_source() {
  if (gate_->is(GateState::final_)) {
    if (auto foreign = foreign_record(final_record(*gate_->gate())); foreign.error) {
      failure_ = std::move(foreign);
      return fail(portable(failure_.error));
    }
    asks_target_alone_ = true;
    return lock_target(final_record(*gate_->gate()));
  }
  state_ = State::source;
  changed_ = false;
  return {Action::lock_source, kNever};
}

GatePtr MoveAcquireFsm::claim_gate(std::int64_t wall_clock_ms) {
  claimed_under_ = gate_->gate();
  auto check = gate_->check(wall_clock_ms);
  if (check->seal.empty() || !foreign_record(moved_record(*claimed_under_, 0, 0)).error) {
    return check;
  }
  // The claim compares the gate. It seals nothing for a plan that this route does not follow.
  return std::make_shared<const GateCheck>(GateCheck{check->key, check->text, {}});
}

Record MoveAcquireFsm::sealing(std::uint64_t token, std::int64_t wall_clock_ms) {
  record_ = moved_record(*claimed_under_, token, wall_clock_ms);
  return record_;
}

MoveAcquireFsm::Step MoveAcquireFsm::lock_target(const Record& record) {
  record_ = record;
  state_ = State::target;
  changed_ = false;
  return {Action::lock_target, kNever};
}

MoveAcquireFsm::Step MoveAcquireFsm::on_source(const Outcome& outcome, TimePoint now,
                                               std::uint64_t random) {
  if (error_) return fail(*error_);
  if (outcome.granted) {
    const auto state = claimed_under_ ? claimed_under_->state : GateState::open;
    if (state == GateState::open || state == GateState::ended) return hold(Held::source);
    if (auto foreign = foreign_record(moved_record(*claimed_under_, 0, 0)); foreign.error) {
      failure_ = std::move(foreign);
      return fail(portable(failure_.error));
    }
    state_ = State::sealing;
    return {Action::seal_source, kNever};
  }
  if (outcome.gate) return follow_gate(*outcome.gate, now);
  if (outcome.error == errc::moving) return follow(outcome.record, now, random);
  failure_ = outcome.failure;
  return fail(outcome.error);
}

// A turn is not a holder: an acquire with wait 0 asks again immediately.
MoveAcquireFsm::Step MoveAcquireFsm::follow_gate(const std::string& text, TimePoint now) {
  std::string why;
  if (!gate_->learn(text, why)) {
    return fail(errc::protocol,
                fmt::format("the gate of plan '{}' in the store '{}' cannot be read: {}",
                            route_.plan, route_.from, why));
  }
  failure_ = {};
  if (now >= limits_.deadline) return fail(errc::timed_out);
  return lock_source();
}

MoveAcquireFsm::Step MoveAcquireFsm::on_sealed(const RecordAnswer& answer, TimePoint now,
                                               std::uint64_t random) {
  if (error_) return fail(*error_);
  switch (answer.status) {
    case RecordStatus::done:
      return lock_target(Record(record_));
    case RecordStatus::conflict:
      if (answer.gate) return follow_gate(*answer.gate, now);
      return start_anew(now);
    case RecordStatus::unavailable:
    case RecordStatus::unknown:
      failure_ = answer.failure;
      return ask_source_later(now, random, errc::unavailable);
    case RecordStatus::failed:
      break;
  }
  failure_ = answer.failure;
  return fail(portable(answer.failure.error));
}

MoveAcquireFsm::Step MoveAcquireFsm::follow(const std::string& text, TimePoint now,
                                            std::uint64_t random) {
  std::string why;
  const auto record = parse_record(text, &why);
  if (!record) {
    return fail(errc::protocol, fmt::format("a migration's record stands in the lock's place in "
                                            "the store '{}', and {}",
                                            route_.from, why));
  }
  if (auto foreign = foreign_record(*record); foreign.error) {
    failure_ = std::move(foreign);
    return fail(portable(failure_.error));
  }
  if (!leads_to_target(record->state)) return ask_source_later(now, random);
  return lock_target(*record);
}

Failure MoveAcquireFsm::foreign_record(const Record& record) const {
  const auto& stores = route_.stores;
  const auto line = route_line(route_.name, route_.from, record.target, record.plan);
  if (std::find(stores.begin(), stores.end(), record.target) == stores.end()) {
    return make_failure(errc::not_configured,
                        fmt::format("plan '{}' moves it to the store '{}', which is not configured "
                                    "here; add it to `stores:`, and `{}` to `locks:`",
                                    record.plan, record.target, line));
  }
  if (record.target != route_.to) {
    return make_failure(errc::moving,
                        fmt::format("plan '{}' moves it to the store '{}', but here its route "
                                    "leads to '{}'; write `{}` below `locks:`",
                                    record.plan, record.target, route_.to, line));
  }
  if (record.plan != route_.plan) {
    return make_failure(errc::moving,
                        fmt::format("it is moved by plan '{}', but here its route names plan '{}'; "
                                    "write `{}` below `locks:`",
                                    record.plan, route_.plan, line));
  }
  return {};
}

MoveAcquireFsm::Step MoveAcquireFsm::on_target(const Outcome& outcome, TimePoint now,
                                               std::uint64_t random) {
  if (error_) return fail(*error_);
  if (outcome.granted) {
    if (asks_target_alone_) return hold(Held::target);
    // If the record has changed, the re-check shows it again and the grant is released.
    state_ = State::rechecking;
    unanswered_since_.reset();
    backoff_.reset();
    return {Action::recheck, kNever};
  }
  if (changed_) return start_anew(now);
  if (outcome.error == errc::moving) {
    const auto there = parse_record(outcome.record);
    if (there && is_closed(*there, route_.from)) {
      closed_ = outcome.record;
      // The flip of record_ is younger, or the source has another record by now.
      const bool is_older =
          asks_target_alone_ ? there->gen.flip <= record_.floor : there->gen < record_.gen;
      if (is_older) {
        state_ = State::rechecking;
        return {Action::open_target, kNever};
      }
      // A later plan has moved the lock on.
      if (!asks_target_alone_) return ask_source_later(now, random);
    }
  }
  failure_ = outcome.failure;
  return fail(outcome.error);
}

MoveAcquireFsm::Step MoveAcquireFsm::on_opened(const RecordAnswer& answer, TimePoint now,
                                               std::uint64_t random) {
  if (error_) return fail(*error_);
  if (answer.status == RecordStatus::done) {
    state_ = State::target;
    return {Action::lock_target, kNever};
  }
  if (answer.status == RecordStatus::failed) {
    failure_ = answer.failure;
    return fail(portable(answer.failure.error));
  }
  if (answer.status == RecordStatus::conflict) return ask_source_later(now, random);
  failure_ = answer.failure;
  return ask_source_later(now, random, errc::unavailable);
}

MoveAcquireFsm::Step MoveAcquireFsm::ask_source_later(TimePoint now, std::uint64_t random,
                                                      errc late) {
  late_ = late;
  if (late == errc::timed_out) failure_ = {};
  if (limits_.once || now >= limits_.deadline) return fail(late);
  return pause(now + pace(random), Action::lock_source);
}

bool MoveAcquireFsm::still_moved(const std::optional<std::string>& text) const {
  if (!text) return false;
  const auto now_there = parse_record(*text);
  if (!now_there || !leads_to_target(now_there->state)) return false;
  return now_there->gen == record_.gen && now_there->plan_id == record_.plan_id;
}

MoveAcquireFsm::Step MoveAcquireFsm::on_recheck(const RecordAnswer& answer, bool good,
                                                TimePoint now, std::uint64_t random) {
  if (error_) return fail(*error_);
  switch (answer.status) {
    case RecordStatus::done:
    case RecordStatus::conflict:
      // The grant is checked after the read, which may be outdated.
      if (still_moved(answer.found) && good) return hold(Held::target);
      return start_anew(now);
    case RecordStatus::unavailable:
    case RecordStatus::unknown:
      return good ? recheck_later(answer.failure, now, random) : start_anew(now);
    case RecordStatus::failed:
      break;
  }
  failure_ = answer.failure;
  return fail(portable(answer.failure.error));
}

MoveAcquireFsm::Step MoveAcquireFsm::recheck_later(const Failure& why, TimePoint now,
                                                   std::uint64_t random) {
  failure_ = why;
  if (!unanswered_since_) unanswered_since_ = now;
  const bool patient = limits_.retry.kind == RetryPolicy::Kind::forever;
  const auto out_of_patience = patient ? kNever : *unanswered_since_ + limits_.connect_timeout;
  const auto wait = limits_.once ? std::nullopt : backoff_.next(now, random);
  if (!wait || now >= out_of_patience || now >= limits_.deadline) return fail(errc::unavailable);
  return pause(std::min(now + *wait, out_of_patience), Action::recheck);
}

// With wait 0 a flip in progress counts as a holder: each store was asked once.
MoveAcquireFsm::Step MoveAcquireFsm::start_anew(TimePoint now) {
  failure_ = {};
  if (limits_.once || now >= limits_.deadline) return fail(errc::timed_out);
  return lock_source();
}

MoveAcquireFsm::Step MoveAcquireFsm::on_woken(TimePoint now) {
  if (error_) return fail(*error_);
  if (now >= limits_.deadline) return fail(error_at_deadline());
  if (after_pause_ != Action::recheck) return lock_source();
  state_ = State::rechecking;
  return {Action::recheck, kNever};
}

MoveAcquireFsm::Step MoveAcquireFsm::pause(TimePoint until, Action then) {
  state_ = State::pausing;
  after_pause_ = then;
  return {Action::pause, std::min(until, limits_.deadline)};
}

// Between half and all of the interval, so that waiters of one lock do not read together.
Duration MoveAcquireFsm::pace(std::uint64_t random) const {
  const auto half = limits_.poll.count() / 2;
  return Duration(half +
                  static_cast<Duration::rep>(
                      random % (static_cast<std::uint64_t>(std::max<Duration::rep>(half, 1)))));
}

TimePoint MoveAcquireFsm::next_look(TimePoint now, std::uint64_t random) const {
  return asks_target_alone_ ? kNever : now + pace(random);
}

bool MoveAcquireFsm::on_look(const RecordAnswer& answer) {
  if (answer.status != RecordStatus::done) return false;
  if (!still_moved(answer.found)) changed_ = true;
  return changed_;
}

bool MoveAcquireFsm::on_deadline() {
  if (limits_.once || state_ == State::source || state_ == State::target) return false;
  if (error_ || state_ == State::finished) return false;
  const auto error = error_at_deadline();
  if (error == errc::unavailable && !failure_.error) {
    failure_ = make_failure(error, std::string(kNoAnswer));
  }
  return give_up(error);
}

// `timed_out` requires an answer of a store. A flip in progress is one: it counts as a holder.
errc MoveAcquireFsm::error_at_deadline() const noexcept {
  const bool is_flip = state_ == State::pausing && after_pause_ != Action::recheck;
  return is_flip ? late_ : errc::unavailable;
}

bool MoveAcquireFsm::give_up(errc error) {
  if (error_ || state_ == State::finished) return false;
  error_ = error;
  return true;
}

MoveAcquireFsm::Step MoveAcquireFsm::hold(Held where) {
  held_ = where;
  state_ = State::finished;
  failure_ = {};
  return {Action::finish, kNever};
}

MoveAcquireFsm::Step MoveAcquireFsm::fail(errc error) {
  error_ = error;
  state_ = State::finished;
  return {Action::finish, kNever};
}

MoveAcquireFsm::Step MoveAcquireFsm::fail(errc error, std::string text) {
  failure_ = make_failure(error, std::move(text));
  return fail(error);
}

}  // namespace dlock::core::migration
