// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_acquisition.hpp"

#include <utility>

#include "migration/leased/leased_claims.hpp"

namespace dlock::core::migration {
namespace {

LeasedAcquireFsm::Limits leased_limits_of(const Acquisition::Request& request) {
  const auto& limits = request.limits;
  return {limits.once, limits.deadline, limits.connect_timeout, limits.retry};
}

}  // namespace

std::shared_ptr<LeasedAcquisition> LeasedAcquisition::start(LeasedHold::Requests requests,
                                                            detail::AcquireHandler handler) {
  auto acquisition = std::make_shared<LeasedAcquisition>(std::move(requests), std::move(handler));
  acquisition->home_->receive(acquisition, acquisition->run());
  return acquisition;
}

LeasedAcquisition::LeasedAcquisition(LeasedHold::Requests requests, detail::AcquireHandler handler)
    : requests_(std::move(requests)),
      home_(requests_.reader->stores().gate),
      caller_(home_->env(), std::move(handler), requests_.source.diagnostics),
      fsm_(leased_limits_of(requests_.source)),
      news_(home_->env()) {}

const std::shared_ptr<Store>& LeasedAcquisition::store(bool in_source) const {
  const auto& stores = requests_.reader->stores();
  return in_source ? stores.from : stores.to;
}

asio::awaitable<void> LeasedAcquisition::run() {
  const auto self = shared_from_this();
  requests_.reader->add(self);
  caller_.call_at(requests_.source.limits.deadline, [this] { interrupt(fsm_.on_deadline()); });
  auto step = fsm_.begin();
  while (step.what != LeasedAcquireFsm::Action::finish) {
    if (step.gives_back) give_back();
    switch (step.what) {
      case LeasedAcquireFsm::Action::read:
        step = co_await read();
        break;
      case LeasedAcquireFsm::Action::lock_source:
        step = co_await lock(true);
        break;
      case LeasedAcquireFsm::Action::lock_target:
        step = co_await lock(false);
        break;
      case LeasedAcquireFsm::Action::raise:
        step = co_await raise();
        break;
      case LeasedAcquireFsm::Action::pause:
        // An immediate outcome has left a notification, which would end the pause: consume it.
        co_await news_.wait_until(env().now());
        co_await news_.wait_until(step.until);
        step = fsm_.on_woken(facts());
        break;
      case LeasedAcquireFsm::Action::finish:
        break;
    }
  }
  caller_.stop_clock();
  finish();
  home_->dismiss(self);
}

LeasedAcquireFsm::Facts LeasedAcquisition::facts() const {
  LeasedAcquireFsm::Facts facts;
  if (const auto newest = requests_.reader->newest()) {
    const auto& gate = newest->gate;
    facts.view = LeasedAcquireFsm::View{gate.state, gate.floor, gate.ceiling};
  }
  facts.is_half_lost = is_half_lost();
  facts.now = env().now();
  facts.random = env().random();
  return facts;
}

bool LeasedAcquisition::is_half_lost() const {
  return (source_ && source_->is_lost()) || (target_ && target_->is_lost());
}

asio::awaitable<LeasedAcquisition::Step> LeasedAcquisition::read() {
  failed_store_ = requests_.reader->stores().gate->name();
  const auto answer = co_await requests_.reader->reading();
  co_return fsm_.on_read(answer.failure, facts());
}

asio::awaitable<LeasedAcquisition::Step> LeasedAcquisition::lock(bool in_source) {
  const auto& store = this->store(in_source);
  outcome_.reset();
  failed_store_ = store->name();
  auto request =
      part_request(*requests_.reader, in_source ? requests_.source : requests_.target, in_source);
  request.token_may_go_back = source_ || target_;  // the other one's token is shown
  inner_ = std::make_shared<Acquisition>(
      store, std::move(request),
      [self = shared_from_this(), in_source](error_code ec, LockHandle handle) {
        self->on_outcome(in_source, ec, std::move(handle));
      });
  store->acquire(inner_);
  while (!outcome_) {
    end_wait();
    co_await news_.wait_until(kNever);
  }
  inner_.reset();
  co_return fsm_.on_locked(in_source, *outcome_, facts());
}

void LeasedAcquisition::on_outcome(bool in_source, error_code ec, LockHandle handle) {
  LeasedAcquireFsm::Outcome outcome;
  outcome.granted = !ec;
  if (ec) {
    outcome.error = portable(ec);
    outcome.failure = {ec, inner_->failure().text};
  } else {
    auto part = std::make_shared<LeasedPart>(std::move(handle), in_source);
    outcome.token = part->token();
    part->report_to(weak_from_this());
    (in_source ? source_ : target_) = std::move(part);
  }
  outcome_ = std::move(outcome);
  news_.notify();
}

asio::awaitable<LeasedAcquisition::Step> LeasedAcquisition::raise() {
  failed_store_ = requests_.reader->stores().gate->name();
  Failure failure;
  if (const auto under = requests_.reader->newest()) {
    const auto answer = co_await requests_.reader->raise(under, fsm_.highest());
    failure = answer.failure;
  }
  co_return fsm_.on_raised(failure, facts());
}

// The outcome says what has become of a wait that is of no use any more.
void LeasedAcquisition::end_wait() {
  const auto newest = requests_.reader->newest();
  const bool is_in_vain =
      newest && fsm_.is_in_vain({newest->gate.state, newest->gate.floor, newest->gate.ceiling});
  if (inner_ && (is_half_lost() || is_in_vain)) inner_->cancel();
}

void LeasedAcquisition::on_reading(const Reading&) { end_wait(); }

// T first, then S.
void LeasedAcquisition::give_back() {
  target_.reset();
  source_.reset();
}

void LeasedAcquisition::interrupt(bool tell_now) {
  if (!tell_now) return;
  tell_error();
  news_.notify();
  if (inner_) inner_->cancel();
}

void LeasedAcquisition::finish() {
  if (!fsm_.granted()) {
    give_back();
    return tell_error();
  }
  // The reading of the last step, which was in the same turn of the loop.
  caller_.give(LeasedHold::join(requests_, std::move(source_), std::move(target_),
                                fsm_.is_source_shown(), *requests_.reader->newest()));
}

void LeasedAcquisition::tell_error() {
  caller_.refuse(fsm_.error(), fsm_.failure(), requests_.source.name, failed_store_,
                 fsm_.failure().text);
}

}  // namespace dlock::core::migration
