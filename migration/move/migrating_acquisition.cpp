// SPDX-License-Identifier: Apache-2.0
#include "migration/move/migrating_acquisition.hpp"

#include "core/store/hold.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "migration/policy/plan_claims.hpp"

namespace dlock::core::migration {
namespace {

MoveAcquireFsm::Limits limits_of(const MigratingAcquisition::Request& request) {
  const auto& limits = request.source.limits;
  return {limits.once, limits.deadline, request.poll, limits.connect_timeout, limits.retry};
}

}  // namespace

std::shared_ptr<MigratingAcquisition> MigratingAcquisition::start(std::shared_ptr<Store> source,
                                                                  std::shared_ptr<Store> target,
                                                                  Request request,
                                                                  detail::AcquireHandler handler) {
  auto acquisition = std::make_shared<MigratingAcquisition>(std::move(source), std::move(target),
                                                            std::move(request), std::move(handler));
  acquisition->source_->receive(acquisition, acquisition->run());
  return acquisition;
}

MigratingAcquisition::MigratingAcquisition(std::shared_ptr<Store> source,
                                           std::shared_ptr<Store> target, Request request,
                                           detail::AcquireHandler handler)
    : source_(std::move(source)),
      target_(std::move(target)),
      request_(std::move(request)),
      caller_(source_->env(), std::move(handler), request_.source.diagnostics),
      fsm_({request_.source.name, source_->name(), target_->name(), request_.plan, request_.stores},
           limits_of(request_), request_.gate),
      news_(source_->env()) {}

asio::awaitable<void> MigratingAcquisition::run() {
  const auto self = shared_from_this();
  auto& env = source_->env();
  caller_.call_at(request_.source.limits.deadline, [this] { interrupt(fsm_.on_deadline()); });
  auto step = fsm_.begin();
  while (step.what != MoveAcquireFsm::Action::finish) {
    switch (step.what) {
      case MoveAcquireFsm::Action::lock_source:
        handle_ = LockHandle();  // the target was the wrong store
        step = co_await lock(source_, request_for_source());
        break;
      case MoveAcquireFsm::Action::seal_source:
        step = co_await seal_source();
        break;
      case MoveAcquireFsm::Action::lock_target:
        step = co_await lock(target_, request_for_target());
        break;
      case MoveAcquireFsm::Action::open_target:
        step = co_await open_target();
        break;
      case MoveAcquireFsm::Action::recheck:
        step = co_await recheck();
        break;
      case MoveAcquireFsm::Action::pause:
        // Clears the notification of an immediate outcome, which would end the pause.
        co_await news_.wait_until(env.now());
        co_await news_.wait_until(step.until);
        step = fsm_.on_woken(env.now());
        break;
      case MoveAcquireFsm::Action::finish:
        break;
    }
  }
  caller_.stop_clock();
  const bool is_moved = fsm_.held_in_target();
  finish();
  if (is_moved && request_.gate->is_due(env.now())) co_await look_at_gate();
  source_->dismiss(self);
}

Acquisition::Request MigratingAcquisition::request_for_source() {
  auto request = request_.source;
  request.policy = source_claims(*source_, participant_mark(request_.plan),
                                 fsm_.claim_gate(source_->env().wall_clock_ms()));
  return request;
}

Acquisition::Request MigratingAcquisition::request_for_target() const {
  auto request = request_.target;
  request.min_token = fsm_.record().floor;
  if (fsm_.record().max_lease.count() > 0) request.max_lease = fsm_.record().max_lease;
  request.policy =
      target_claims(*target_, {fsm_.record().plan, fsm_.record().plan_id, source_->name()});
  return request;
}

asio::awaitable<MoveAcquireFsm::Step> MigratingAcquisition::lock(std::shared_ptr<Store> store,
                                                                 Acquisition::Request request) {
  auto& env = source_->env();
  step_.reset();
  failed_store_ = store->name();
  request.diagnostics = nullptr;
  inner_ = std::make_shared<Acquisition>(
      store, std::move(request), [self = shared_from_this()](error_code ec, LockHandle handle) {
        self->on_outcome(ec, std::move(handle));
      });
  store->acquire(inner_);
  while (!step_) {
    const auto look = fsm_.waits_for_target() ? fsm_.next_look(env.now(), env.random()) : kNever;
    const bool told = co_await news_.wait_until(look);
    if (told || step_) continue;
    const auto record = co_await read_record();
    if (!step_ && fsm_.on_look(record)) inner_->cancel();
  }
  inner_.reset();
  co_return *step_;
}

// Completes the caller immediately, also while read_record() is in progress.
void MigratingAcquisition::on_outcome(error_code ec, LockHandle handle) {
  auto& env = source_->env();
  MoveAcquireFsm::Outcome outcome;
  outcome.granted = !ec;
  if (ec) {
    outcome.error = portable(ec);
    outcome.failure = {ec, inner_->failure().text};
    outcome.record = inner_->record();
    outcome.gate = inner_->gate();
  }
  handle_ = std::move(handle);
  step_ = fsm_.waits_for_target() ? fsm_.on_target(outcome, env.now(), env.random())
                                  : fsm_.on_source(outcome, env.now(), env.random());
  if (step_->what == MoveAcquireFsm::Action::finish && !fsm_.granted()) tell_error();
  news_.notify();
}

asio::awaitable<RecordAnswer> MigratingAcquisition::read_record() {
  RecordAnswer answer;
  try {
    const auto until = source_->env().now() + source_->request_timeout();
    answer = co_await source_->backend().migration().record(request_.source.name, until);
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    answer.status = RecordStatus::unavailable;
    answer.failure = make_failure(errc::protocol, error.what());
  }
  co_return answer;
}

// Any other outcome releases the claim, so that a delayed copy of the request fails.
asio::awaitable<MoveAcquireFsm::Step> MigratingAcquisition::seal_source() {
  failed_store_ = source_->name();
  RecordAnswer answer;
  answer.status = RecordStatus::conflict;
  const auto& hold = HandleAccess::hold(handle_);
  const auto claim = hold->claim();
  const auto token = handle_.token();
  if (claim && token) {
    try {
      const auto record = fsm_.sealing(*token, source_->env().wall_clock_ms());
      const auto until = source_->env().now() + source_->request_timeout();
      answer = co_await source_->backend().migration().seal(claim, to_text(record), until);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      answer.status = RecordStatus::unknown;
      answer.failure = make_failure(errc::protocol, error.what());
    }
  }
  if (answer.status == RecordStatus::done) source_->retire(*hold);
  handle_ = LockHandle();
  auto& env = source_->env();
  co_return fsm_.on_sealed(answer, env.now(), env.random());
}

asio::awaitable<void> MigratingAcquisition::look_at_gate() {
  try {
    const auto until = source_->env().now() + source_->request_timeout();
    const auto answer =
        co_await source_->backend().migration().note(gate_key(request_.plan), until);
    std::string unused;
    if (answer.status == RecordStatus::done) {
      request_.gate->learn(answer.found.value_or(std::string()), unused);
    }
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);  // else a later acquire reads the gate
  }
}

asio::awaitable<MoveAcquireFsm::Step> MigratingAcquisition::open_target() {
  failed_store_ = target_->name();
  RecordAnswer answer;
  try {
    const auto until = target_->env().now() + target_->request_timeout();
    answer = co_await target_->backend().migration().set_record(
        request_.target.name, fsm_.closed(), std::nullopt, fsm_.record().floor, until);
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    answer.status = RecordStatus::unavailable;
    answer.failure = make_failure(errc::protocol, error.what());
  }
  auto& env = source_->env();
  co_return fsm_.on_opened(answer, env.now(), env.random());
}

asio::awaitable<MoveAcquireFsm::Step> MigratingAcquisition::recheck() {
  failed_store_ = source_->name();
  const auto answer = co_await read_record();
  auto& env = source_->env();
  const bool good = handle_ && handle_.state() != HandleState::lost;
  co_return fsm_.on_recheck(answer, good, env.now(), env.random());
}

void MigratingAcquisition::cancel() { interrupt(fsm_.on_cancel()); }

void MigratingAcquisition::close() { interrupt(fsm_.on_closed()); }

void MigratingAcquisition::interrupt(bool tell_now) {
  if (!tell_now) return;
  tell_error();
  news_.notify();
  if (inner_) inner_->cancel();
}

void MigratingAcquisition::finish() {
  if (fsm_.granted()) return caller_.give(std::move(handle_));
  handle_ = LockHandle();
  tell_error();
}

void MigratingAcquisition::tell_error() {
  caller_.refuse(fsm_.error(), fsm_.failure(), request_.source.name, failed_store_,
                 fsm_.failure().text);
}

}  // namespace dlock::core::migration
