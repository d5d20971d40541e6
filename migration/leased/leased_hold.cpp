// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_hold.hpp"

#include <algorithm>
#include <utility>

#include "core/store/host.hpp"
#include "core/store/store.hpp"
#include "migration/await_lock.hpp"
#include "migration/leased/leased_claims.hpp"

namespace dlock::core::migration {
namespace {

/// After a failure to acquire the second lock.
constexpr std::chrono::milliseconds kSecondPause{250};

enum Doubt { of_source, of_target, of_gate };

}  // namespace

LockHandle LeasedHold::join(Requests requests, PartPtr source, PartPtr target, bool is_source_shown,
                            const Reading& reading) {
  const bool are_both = source && target;
  const auto shown = is_source_shown ? source : target;
  const auto reader = requests.reader;
  auto leased = std::make_shared<LeasedHold>(std::move(requests), source, target,
                                             are_both ? kNever : reading.until);
  auto user = std::make_shared<Hold>(shown->hold(), leased);
  leased->user_ = user;
  if (source) source->report_to(leased);
  if (target) target->report_to(leased);
  leased->arm(leased->gate_until());
  reader->add(leased);
  return LockHandle(std::move(user));
}

LeasedHold::LeasedHold(Requests requests, PartPtr source, PartPtr target, TimePoint gate_until)
    : requests_(std::move(requests)),
      parts_{std::move(source), std::move(target)},
      gate_until_(gate_until) {}

LeasedHold::~LeasedHold() {
  auto& env = this->env();
  if (timer_ == 0 && !is_taking_second_) return;
  env.post([&env, timer = timer_, second = second_] {
    env.cancel(timer);
    if (const auto acquisition = second.lock()) acquisition->cancel();
  });
}

LeasedHold::Parts LeasedHold::parts() const {
  const std::lock_guard guard(mutex_);
  return parts_;
}

LeasedHold::Parts LeasedHold::take_parts() {
  const std::lock_guard guard(mutex_);
  return std::exchange(parts_, {});
}

TimePoint LeasedHold::gate_until() const {
  const std::lock_guard guard(mutex_);
  return gate_until_;
}

LeasedHold::Places LeasedHold::places() const {
  const auto have = parts();
  return {have.source != nullptr, have.target != nullptr};
}

TimePoint LeasedHold::until() const noexcept {
  const std::lock_guard guard(mutex_);
  auto until = gate_until_;
  if (parts_.source) until = std::min(until, parts_.source->hold().until());
  if (parts_.target) until = std::min(until, parts_.target->hold().until());
  return until;
}

LossReason LeasedHold::why() const noexcept {
  const auto parts = this->parts();
  for (const auto& part : {parts.source, parts.target}) {
    if (!part || part->hold().until() > env().now()) continue;
    const auto known = part->hold().reason();
    return known == LossReason::none ? LossReason::expired : known;
  }
  return gate_until() <= env().now() ? LossReason::gate_not_confirmed : LossReason::expired;
}

std::string LeasedHold::broken_by() {
  const auto parts = this->parts();
  for (const auto& part : {parts.source, parts.target}) {
    auto by = part ? part->hold().broken_by() : std::string();
    if (!by.empty()) return by;
  }
  return {};
}

// Releases T first, then S: a client that waits in the order of the gate finds the other lock free.
bool LeasedHold::take_back(Hold& hold, Releaser::Done& done) {
  auto parts = take_parts();
  for (const auto& part : {parts.source, parts.target}) {
    if (part && hold.is_handed_to_mutex()) part->hold().hand_to_mutex();
  }
  const auto first = parts.target ? parts.target : parts.source;
  const auto second = parts.target ? parts.source : nullptr;
  if (!first) {
    if (done) done(make_error_code(errc::lock_lost));
    return true;
  }
  first->hold().hand_out();  // a loss that shows now is its user's
  if (!second) {
    first->release(std::move(done));
    return true;
  }
  first->release([second, done = std::move(done)](error_code ec) mutable {
    second->release([ec, done = std::move(done)](error_code other) mutable {
      if (done) done(ec ? ec : other);
    });
  });
  return true;
}

void LeasedHold::on_inherited() noexcept {
  const auto parts = this->parts();
  if (parts.source) parts.source->hold().inherit();
  if (parts.target) parts.target->hold().inherit();
}

void LeasedHold::on_part_change(bool in_source, HandleState state, LossReason why) noexcept {
  const auto user = user_.lock();
  if (!user) return;
  if (state == HandleState::lost) return user->become(state, why);
  if (state != HandleState::held && state != HandleState::suspect) return;
  {
    const std::lock_guard guard(mutex_);
    is_doubtful_[in_source ? of_source : of_target] = state == HandleState::suspect;
  }
  become_sure_or_not();
}

void LeasedHold::become_sure_or_not() noexcept {
  bool is_doubtful = false;
  {
    const std::lock_guard guard(mutex_);
    for (const bool one : is_doubtful_) is_doubtful = is_doubtful || one;
  }
  const auto user = user_.lock();
  if (user) user->become(is_doubtful ? HandleState::suspect : HandleState::held);
}

void LeasedHold::arm(TimePoint when) {
  env().cancel(std::exchange(timer_, 0));
  if (when == kNever) return;
  timer_ = env().call_at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    if (const auto user = self->user_.lock()) user->state();  // sees that it is lost
  });
}

void LeasedHold::believe_until(TimePoint gate_until) {
  {
    const std::lock_guard guard(mutex_);
    gate_until_ = gate_until;
    is_doubtful_[of_gate] = false;
  }
  arm(gate_until);
  become_sure_or_not();
}

void LeasedHold::on_reading(const Reading& reading) {
  const auto user = user_.lock();
  if (is_over_ || !user || user->has_ended()) return;
  const auto state = reading.gate.state;
  const auto have = parts();
  if (is_both(state)) {
    if (!have.are_both()) take_second(!have.source);
    return;
  }
  const bool in_source = is_source_alone(state);
  const auto& needed = in_source ? have.source : have.target;
  if (!needed) return take_second(in_source);
  cancel_second();
  if (have.are_both()) return let_go_of(!in_source, reading.until);
  believe_until(std::max(gate_until(), reading.until));
}

void LeasedHold::on_reading_failed() {
  {
    const std::lock_guard guard(mutex_);
    if (gate_until_ == kNever) return;
    is_doubtful_[of_gate] = true;
  }
  become_sure_or_not();
}

void LeasedHold::let_go_of(bool in_source, TimePoint gate_until) {
  PartPtr unneeded;
  {
    const std::lock_guard guard(mutex_);
    unneeded = std::exchange(in_source ? parts_.source : parts_.target, nullptr);
    gate_until_ = gate_until;
    is_doubtful_[in_source ? of_source : of_target] = false;
  }
  unneeded->release({});
  believe_until(gate_until);
}

bool LeasedHold::wants_second(bool in_source) const {
  const auto user = user_.lock();
  if (is_over_ || !user || user->has_ended()) return false;
  const auto have = parts();
  if (have.are_both() || !(in_source ? have.target : have.source)) return false;
  const auto newest = requests_.reader->newest();
  return !newest || is_both(newest->gate.state) || in_source == is_source_alone(newest->gate.state);
}

void LeasedHold::take_second(bool in_source) {
  if (std::exchange(is_taking_second_, true)) return;
  const auto& stores = requests_.reader->stores();
  (in_source ? stores.from : stores.to)->spawn(acquire_second(weak_from_this(), in_source));
}

asio::awaitable<void> LeasedHold::acquire_second(std::weak_ptr<LeasedHold> weak, bool in_source) {
  for (;;) {
    std::shared_ptr<Store> store;
    Acquisition::Request request;
    {
      const auto self = weak.lock();
      if (!self) co_return;
      if (!self->wants_second(in_source)) {
        self->is_taking_second_ = false;
        co_return;
      }
      const auto& reader = *self->requests_.reader;
      store = in_source ? reader.stores().from : reader.stores().to;
      request = in_source ? self->requests_.source : self->requests_.target;
      request = part_request(reader, std::move(request), in_source);
      request.limits.once = false;
      request.limits.deadline = kNever;
      request.token_may_go_back = true;
    }
    auto begun = [weak](const std::shared_ptr<Acquisition>& acquisition) {
      if (const auto self = weak.lock()) self->second_ = acquisition;
    };
    auto got = co_await await_lock(store, std::move(request), std::move(begun));
    const auto self = weak.lock();
    if (!self) co_return;
    if (!got.error) {
      self->is_taking_second_ = false;
      self->join_second(std::move(got.handle), in_source);
      co_return;
    }
    if (got.error == errc::closed) {
      self->is_taking_second_ = false;
      co_return;
    }
    const auto again = self->env().now() + kSecondPause;
    auto& env = self->env();
    if (self->wants_second(in_source)) co_await sleep_until(env, again);
  }
}

void LeasedHold::join_second(LockHandle granted, bool in_source) {
  if (!wants_second(in_source)) return;
  auto part = std::make_shared<LeasedPart>(std::move(granted), in_source);
  part->report_to(weak_from_this());
  {
    const std::lock_guard guard(mutex_);
    (in_source ? parts_.source : parts_.target) = part;
  }
  if (part->is_lost()) {
    if (const auto user = user_.lock()) user->become(HandleState::lost, part->hold().reason());
    return;
  }
  believe_until(kNever);
  if (const auto newest = requests_.reader->newest()) on_reading(*newest);
}

void LeasedHold::cancel_second() {
  if (const auto acquisition = second_.lock()) acquisition->cancel();
}

TimePoint LeasedHold::promised() const {
  const std::lock_guard guard(mutex_);
  auto until = gate_until_;
  if (parts_.source) until = std::min(until, parts_.source->hold().promised());
  if (parts_.target) until = std::min(until, parts_.target->hold().promised());
  return until;
}

void LeasedHold::on_lost(LossReason why) {
  if (std::exchange(is_over_, true)) return;
  env().cancel(std::exchange(timer_, 0));
  cancel_second();
  // The store releases a lock that it ends, when the owner of the handle has stopped.
  if (why == LossReason::closed || is_over_use(why)) return;
  const auto until = promised();
  if (until <= env().now()) return give_back();
  if (until == kNever) return;
  env().call_at(until, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->give_back();
  });
}

void LeasedHold::give_back() {
  const auto parts = take_parts();
  if (parts.target) parts.target->release({});
  if (parts.source) parts.source->release({});
}

}  // namespace dlock::core::migration
