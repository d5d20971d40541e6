// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_hold.hpp"

#include <algorithm>
#include <utility>

#include "core/store/host.hpp"
#include "core/store/store.hpp"

namespace dlock::core::migration {

std::shared_ptr<HoldWatch> HoldWatch::beside(const LockHandle& handle) {
  auto watch = std::make_shared<HoldWatch>();
  HandleAccess::hold(handle)->depend_on(watch);
  return watch;
}

void HoldWatch::on_lost(LossReason why) {
  if (const auto listener = listener_.lock()) listener->on_hold_lost(why);
}

LockHandle DualHold::join(LockHandle shown, LockHandle beside, std::shared_ptr<HoldWatch> watch,
                          std::shared_ptr<Registration> registration) {
  const auto hold = HandleAccess::hold(shown);
  auto dual = std::make_shared<DualHold>(hold, std::move(beside), watch, registration);
  // When the manager closes, the lock beside waits for the shown one.
  if (dual->beside_hold_) dual->beside_hold_->expect_owner();
  hold->depend_on(dual);
  registration->add(dual);
  if (watch) watch->listen(dual);
  return shown;
}

DualHold::DualHold(std::weak_ptr<Hold> shown, LockHandle beside, std::shared_ptr<HoldWatch> watch,
                   std::shared_ptr<Registration> registration)
    : shown_(std::move(shown)),
      beside_hold_(HandleAccess::hold(beside)),
      registration_(std::move(registration)),
      watch_(std::move(watch)),
      beside_(std::move(beside)) {}

TimePoint DualHold::until() const noexcept {
  auto until = registration_->until();
  if (beside_hold_) until = std::min(until, beside_hold_->until());
  return until;
}

void DualHold::on_lost(LossReason why) { lose(why); }

void DualHold::on_registration_over(LossReason why) { lose(why); }

void DualHold::on_hold_lost(LossReason why) { lose(why); }

TimePoint DualHold::promised() const noexcept {
  auto until = registration_->promised();
  if (const auto hold = shown_.lock()) until = std::min(until, hold->promised());
  if (beside_hold_) until = std::min(until, beside_hold_->promised());
  return until;
}

void DualHold::lose(LossReason why) {
  if (std::exchange(is_over_, true)) return;
  const auto hold = shown_.lock();
  if (!hold) return give_back();
  const auto until = promised();
  hold->become(HandleState::lost, why);
  auto& env = hold->host().env();
  // The store gives the shown lock back when who has it has stopped; that ends the one beside.
  if (why == LossReason::closed || is_over_use(why)) return;
  if (until <= env.now()) return give_back();
  if (until == kNever) return;
  env.call_at(until, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->give_back();
  });
}

// T first, then S.
void DualHold::give_back() {
  if (const auto hold = shown_.lock()) {
    if (const auto store = hold->store().lock()) store->drop(hold);
  }
  beside_ = LockHandle();
}

Releaser::Done DualHold::on_release(Releaser::Done done) {
  if (!beside_) return done;
  auto other = std::make_shared<LockHandle>(std::move(beside_));
  return [other, done = std::move(done)](error_code first) mutable {
    other->start_release([first, done = std::move(done)](error_code second) mutable {
      if (done) done(first ? first : second);
    });
  };
}

}  // namespace dlock::core::migration
