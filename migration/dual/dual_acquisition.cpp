// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_acquisition.hpp"

#include "dlock/detail/out_of_memory.hpp"
#include "migration/policy/plan_claims.hpp"

namespace dlock::core::migration {
namespace {

DualAcquireFsm::Limits limits_of(const DualAcquisition::Request& request) {
  const auto& limits = request.source.limits;
  return {limits.once, limits.deadline, limits.connect_timeout, limits.retry};
}

bool is_lost(const LockHandle& handle) { return handle && handle.state() == HandleState::lost; }

}  // namespace

std::shared_ptr<DualAcquisition> DualAcquisition::start(std::shared_ptr<Registrar> registrar,
                                                        Request request,
                                                        detail::AcquireHandler handler) {
  auto acquisition = std::make_shared<DualAcquisition>(std::move(registrar), std::move(request),
                                                       std::move(handler));
  acquisition->home_->receive(acquisition, acquisition->run());
  return acquisition;
}

DualAcquisition::DualAcquisition(std::shared_ptr<Registrar> registrar, Request request,
                                 detail::AcquireHandler handler)
    : registrar_(std::move(registrar)),
      home_(registrar_->settings().phase == kLastPhase ? registrar_->stores().to
                                                       : registrar_->stores().from),
      request_(std::move(request)),
      caller_(home_->env(), std::move(handler), request_.source.diagnostics),
      fsm_(registrar_->settings().phase, limits_of(request_)),
      news_(env()) {}

Env& DualAcquisition::env() const { return home_->env(); }

asio::awaitable<void> DualAcquisition::run() {
  const auto self = shared_from_this();
  caller_.call_at(request_.source.limits.deadline, [this] { interrupt(fsm_.on_deadline()); });
  auto step = fsm_.begin();
  while (step.what != DualAcquireFsm::Action::finish) {
    switch (step.what) {
      case DualAcquireFsm::Action::enter:
        step = co_await enter();
        break;
      case DualAcquireFsm::Action::lock_source:
        step = co_await lock(true);
        break;
      case DualAcquireFsm::Action::lock_target:
        step = co_await lock(false);
        break;
      case DualAcquireFsm::Action::raise_source:
        step = co_await raise();
        break;
      case DualAcquireFsm::Action::settle:
        step = co_await settle();
        break;
      case DualAcquireFsm::Action::pause:
        // First what an outcome that came at once has left: it would end the pause at once.
        co_await news_.wait_until(env().now());
        co_await news_.wait_until(step.until);
        step = fsm_.on_woken(env().now());
        break;
      case DualAcquireFsm::Action::finish:
        break;
    }
  }
  caller_.stop_clock();
  finish();
  home_->dismiss(self);
}

asio::awaitable<DualAcquireFsm::Step> DualAcquisition::enter() {
  give_back();
  const auto entered = co_await registrar_->enter();
  const auto& window = registrar_->stores().window;
  failed_store_ = window ? window->name() : registrar_->stores().to->name();
  registration_ = entered.registration;
  if (registration_) registration_->add(weak_from_this());
  const auto floor = registration_ ? registration_->floor() : 0;
  co_return fsm_.on_entered(entered.failure, floor, env().now(), env().random());
}

Acquisition::Request DualAcquisition::request_for(bool in_source) const {
  auto request = in_source ? request_.source : request_.target;
  request.diagnostics = nullptr;
  request.min_token = fsm_.min_token();
  if (in_source) {
    request.policy = source_claims(*registrar_->stores().from, registrar_->program());
    // A source that forgets counts from somewhere again; T's token is what is shown.
    request.token_may_go_back = fsm_.phase() == 1;
  } else {
    request.policy = target_claims(
        *registrar_->stores().to,
        {registrar_->settings().plan, registration_->plan_id(), registrar_->stores().from->name()},
        registrar_->program());
  }
  return request;
}

asio::awaitable<DualAcquireFsm::Step> DualAcquisition::lock(bool in_source) {
  const auto& store = in_source ? registrar_->stores().from : registrar_->stores().to;
  step_.reset();
  failed_store_ = store->name();
  inner_ = std::make_shared<Acquisition>(
      store, request_for(in_source),
      [self = shared_from_this(), in_source](error_code ec, LockHandle handle) {
        self->on_outcome(in_source, ec, std::move(handle));
      });
  store->acquire(inner_);
  while (!step_) {
    if (good() != DualAcquireFsm::Good::yes) inner_->cancel();
    co_await news_.wait_until(kNever);
  }
  inner_.reset();
  co_return *step_;
}

void DualAcquisition::on_outcome(bool in_source, error_code ec, LockHandle handle) {
  DualAcquireFsm::Outcome outcome;
  outcome.granted = !ec;
  if (ec) {
    outcome.error = portable(ec);
    outcome.failure = {ec, inner_->failure().text};
  } else {
    outcome.token = handle.token().value_or(0);
    if (fsm_.phase() == 1 && !source_ && !target_) {
      watch_ = HoldWatch::beside(handle);
      watch_->listen(weak_from_this());
    }
    (in_source ? source_ : target_) = std::move(handle);
  }
  const auto now = env().now();
  step_ = in_source ? fsm_.on_source(outcome, good(), now) : fsm_.on_target(outcome, good(), now);
  if (step_->what == DualAcquireFsm::Action::finish && !fsm_.granted()) tell_error();
  news_.notify();
}

asio::awaitable<DualAcquireFsm::Step> DualAcquisition::raise() {
  auto& source = *registrar_->stores().from;
  failed_store_ = source.name();
  RecordAnswer answer;
  answer.status = RecordStatus::conflict;
  const auto claim = HandleAccess::hold(source_)->claim();
  if (claim) {
    try {
      const auto until = env().now() + source.request_timeout();
      answer = co_await source.backend().migration().raise(claim, fsm_.token(), until);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      answer.status = RecordStatus::unknown;
      answer.failure = make_failure(errc::protocol, error.what());
    }
  }
  co_return fsm_.on_raised(answer, good(), env().now(), env().random());
}

asio::awaitable<DualAcquireFsm::Step> DualAcquisition::settle() {
  const auto failure = co_await registrar_->reach(registration_, fsm_.token());
  co_return fsm_.on_settled(failure, good(), env().now(), env().random());
}

DualAcquireFsm::Good DualAcquisition::good() const {
  if (!registration_ || registration_->is_over(env().now())) {
    return DualAcquireFsm::Good::not_registered;
  }
  const bool lost = is_lost(source_) || is_lost(target_);
  return lost ? DualAcquireFsm::Good::half_lost : DualAcquireFsm::Good::yes;
}

// T first, then S.
void DualAcquisition::give_back() {
  target_ = LockHandle();
  source_ = LockHandle();
  watch_.reset();
}

void DualAcquisition::on_registration_over(LossReason) { end_wait(); }

void DualAcquisition::on_hold_lost(LossReason) { end_wait(); }

// What is waited for would not be held: the outcome says what has become of it.
void DualAcquisition::end_wait() {
  if (good() == DualAcquireFsm::Good::yes) return;
  if (inner_) inner_->cancel();
  news_.notify();
}

void DualAcquisition::cancel() { interrupt(fsm_.on_cancel()); }

void DualAcquisition::close() { interrupt(fsm_.on_closed()); }

void DualAcquisition::interrupt(bool tell_now) {
  if (!tell_now) return;
  tell_error();
  news_.notify();
  if (inner_) inner_->cancel();
}

void DualAcquisition::finish() {
  if (!fsm_.granted()) {
    give_back();
    return tell_error();
  }
  auto& shown = target_ ? target_ : source_;
  auto& beside = target_ ? source_ : target_;
  auto handle = DualHold::join(std::move(shown), std::move(beside), watch_, registration_);
  caller_.give(std::move(handle));
}

void DualAcquisition::tell_error() {
  caller_.refuse(fsm_.error(), fsm_.failure(), request_.source.name, failed_store_,
                 fsm_.failure().text);
}

}  // namespace dlock::core::migration
