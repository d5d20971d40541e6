// SPDX-License-Identifier: Apache-2.0
#include "core/hold.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "core/fork.hpp"
#include "core/host.hpp"
#include "core/planted.hpp"

namespace dlock::core {
namespace {

bool is_final(HandleState state) {
  return state == HandleState::lost || state == HandleState::released;
}

}  // namespace

Hold::Hold(std::shared_ptr<Host> host, std::weak_ptr<Store> store, Identity identity,
           const ClaimPtr& claim, TimePoint deadline)
    : host_(std::move(host)),
      store_(std::move(store)),
      identity_(std::move(identity)),
      claim_(claim),
      generation_(fork_generation()),
      deadline_(deadline.time_since_epoch().count()) {}

bool Hold::is_foreign() const noexcept { return fork_generation() != generation_; }

HandleState Hold::state() noexcept {
  const auto now_state = state_.load(std::memory_order_acquire);
  if (is_final(now_state)) return now_state;
  if (is_foreign()) {
    reason_.store(LossReason::closed, std::memory_order_release);
    return HandleState::lost;
  }
  if (remaining() == Duration::zero()) {
    change(HandleState::lost, LossReason::expired);
    return state_.load(std::memory_order_acquire);
  }
  return now_state;
}

TimePoint Hold::until() const noexcept {
  if (is_foreign() || is_final(state_.load(std::memory_order_acquire))) return TimePoint::min();
  return companion_ ? std::min(promised(), companion_->until()) : promised();
}

std::optional<Duration> Hold::remaining() noexcept {
  const auto deadline = until();
  if (deadline == TimePoint::min()) return Duration::zero();
  if (deadline == kNever) return std::nullopt;
  if (DLOCK_PLANTED("core_remaining_never_ends")) return std::chrono::hours(1);
  return std::max(deadline - host_->env().now(), Duration::zero());
}

void Hold::on_state(StateCallback callback) {
  if (is_foreign()) return;
  auto shared = std::make_shared<const StateCallback>(std::move(callback));
  const auto present = state();
  const std::lock_guard lock(mutex_);
  callbacks_.push_back(shared);
  // Read again under the mutex: a change in between has been told, or is told by us now.
  const auto told = state_.load(std::memory_order_acquire);
  if (present == HandleState::held && told == HandleState::held) return;
  if (told == HandleState::held) return;
  host_->post_callback([shared, told, why = reason()] { (*shared)(told, why); });
}

bool Hold::give_back() noexcept {
  if (state() == HandleState::lost) return false;
  return change(HandleState::released, LossReason::none);
}

void Hold::let_go() noexcept {
  if (!companion_) return;
  host_->post([companion = companion_] { companion->on_let_go(); });
}

void Hold::move_deadline(TimePoint deadline) noexcept {
  deadline_.store(deadline.time_since_epoch().count(), std::memory_order_release);
}

void Hold::become(HandleState state, LossReason reason) noexcept { change(state, reason); }

bool Hold::change(HandleState state, LossReason reason) noexcept {
  const std::lock_guard lock(mutex_);
  const auto present = state_.load(std::memory_order_acquire);
  if (is_final(present) || present == state) return false;
  reason_.store(reason, std::memory_order_release);
  state_.store(state, std::memory_order_release);
  notify(state, reason);
  return true;
}

// Our own release is no news to who asked for it; it only ends the callbacks.
void Hold::notify(HandleState state, LossReason reason) {
  if (state == HandleState::released) {
    callbacks_.clear();
    return;
  }
  host_->post_callback([self = shared_from_this(), callbacks = callbacks_, state, reason] {
    if (state == HandleState::lost) self->stop_.request_stop();
    for (const auto& callback : callbacks) (*callback)(state, reason);
    if (DLOCK_PLANTED("core_lost_is_told_twice")) {
      for (const auto& callback : callbacks) (*callback)(state, reason);
    }
  });
  if (state == HandleState::lost) callbacks_.clear();
  if (state == HandleState::lost && companion_) {
    asio::post(host_->env().executor(),
               [companion = companion_, reason] { companion->on_lost(reason); });
  }
}

int inheritable_descriptor(const LockHandle& handle) noexcept {
  const auto& hold = HandleAccess::hold(handle);
  return hold ? hold->identity().inheritable_descriptor : -1;
}

}  // namespace dlock::core
