// SPDX-License-Identifier: Apache-2.0
#include "core/store/notifier.hpp"

#include <algorithm>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::core {

bool Notifier::is_foreign() const noexcept { return fork_generation() != generation_; }

bool Notifier::become(const Lock&, HandleState state, LossReason why) noexcept {
  const auto present = state_.load(std::memory_order_acquire);
  if (is_final(present) || present == state) return false;
  reason_.store(why, std::memory_order_release);
  state_.store(state, std::memory_order_release);
  if (state == HandleState::lost) {
    stop_is_due_ = true;
    loss_is_due_ = reports_loss_;
  } else if (state != HandleState::released) {
    ++changes_;
  }
  return true;
}

void Notifier::report_loss(const Lock&) noexcept {
  reports_loss_ = true;
  loss_is_due_ = state() == HandleState::lost;
}

void Notifier::add(Callback callback, bool with_present) {
  Listeners added;
  added.push_back({std::move(callback)});
  auto& listener = added.front();
  const auto locked = lock();
  if (std::holds_alternative<StateCallback>(listener.call)) {
    const bool with_suspect = with_present && state() == HandleState::suspect;
    listener.known = with_suspect ? changes_ - 1 : changes_;
    listener.knows_loss = !with_present && state() == HandleState::lost;
  }
  listeners_.splice(listeners_.end(), added);
}

void Notifier::note_contended() noexcept {
  const auto locked = lock();
  is_contended_ = true;
}

void Notifier::note_request(const Revocation& how) {
  auto request = std::make_shared<const Revocation>(how);
  const auto locked = lock();
  request_.swap(request);
  ++requests_;
}

bool Notifier::begin(const Lock&) noexcept {
  const bool is_any = stop_is_due_ || loss_is_due_ || next() != nullptr || has_useless_listeners();
  return is_any && !std::exchange(is_begun_, true);
}

// The stop is before changes that were before the loss: it ends the work.
void Notifier::notify(Lock& lock, const Hooks& hooks) {
  while (true) {
    if (std::exchange(stop_is_due_, false)) {
      outside(lock, hooks, [this] { stop_.request_stop(); });
    } else if (std::exchange(loss_is_due_, false)) {
      outside(lock, hooks, hooks.on_loss);
    } else if (auto* const listener = next()) {
      call(lock, hooks, *listener);
    } else if (has_useless_listeners()) {
      // The destructors of what the callbacks captured are user code.
      Listeners dropped;
      dropped.swap(listeners_);
      outside(lock, hooks, [&dropped] { dropped.clear(); });
    } else {
      break;
    }
  }
  is_begun_ = false;
  auto quiet = std::exchange(when_quiet_, {});
  const auto thrown = std::exchange(thrown_, nullptr);
  lock.unlock();
  if (quiet) quiet();
  if (thrown) std::rethrow_exception(thrown);
}

bool Notifier::is_due(const Listener& listener) const noexcept {
  if (std::holds_alternative<StateCallback>(listener.call)) {
    return state() == HandleState::lost && !listener.knows_loss;
  }
  // A holder that has released or lost the lock cannot give way.
  if (has_ended()) return false;
  const bool is_of_requests = std::holds_alternative<RevokeCallback>(listener.call);
  return listener.known != (is_of_requests ? requests_ : is_contended_ ? 1 : 0);
}

/// Returns the listener to notify. All listeners get a change before any gets the next.
Notifier::Listener* Notifier::next() noexcept {
  if (is_left_) return nullptr;
  Listener* next = nullptr;
  for (auto& listener : listeners_) {
    if (!std::holds_alternative<StateCallback>(listener.call)) continue;
    if (listener.known < changes_ && (next == nullptr || listener.known < next->known)) {
      next = &listener;
    }
  }
  if (next != nullptr) return next;
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [this](const Listener& listener) { return is_due(listener); });
  return found == listeners_.end() ? nullptr : &*found;
}

bool Notifier::has_useless_listeners() const noexcept {
  return !listeners_.empty() && (is_left_ || has_ended());
}

void Notifier::call(Lock& lock, const Hooks& hooks, Listener& listener) {
  if (const auto* const call = std::get_if<ContendedCallback>(&listener.call)) {
    listener.known = 1;
    return outside(lock, hooks, *call);
  }
  if (const auto* const call = std::get_if<RevokeCallback>(&listener.call)) {
    listener.known = requests_;
    return outside(lock, hooks, [call, request = request_] { (*call)(*request); });
  }
  auto state = HandleState::lost;
  if (listener.known < changes_) {
    state = ++listener.known % 2 == 1 ? HandleState::suspect : HandleState::held;
  } else {
    listener.knows_loss = true;
  }
  const auto why = state == HandleState::lost ? reason() : LossReason::none;
  outside(lock, hooks, [&] { std::get<StateCallback>(listener.call)(state, why); });
}

template <class UserCode>
void Notifier::outside(Lock& lock, const Hooks& hooks, const UserCode& code) {
  notifying_ = std::this_thread::get_id();
  lock.unlock();
  try {
    code();
  } catch (...) {
    if (hooks.on_thrown) {
      hooks.on_thrown(std::current_exception());
    } else if (!thrown_) {
      thrown_ = std::current_exception();
    }
  }
  lock.lock();
  notifying_ = {};
  quiet_.notify_all();
}

bool Notifier::is_notifying_here() {
  const auto locked = lock();
  return is_here();
}

void Notifier::wait_turn(Lock& lock) {
  quiet_.wait(lock, [this] { return is_here() || notifying_ == std::thread::id(); });
}

void Notifier::wait_quiet() noexcept {
  if (is_foreign()) return;
  auto locked = lock();
  // notify() destroys the callbacks when it returns from the one that is running here.
  if (is_here()) return;
  wait_turn(locked);
  Listeners dropped;
  dropped.swap(listeners_);
  locked.unlock();
}

void Notifier::release_quietly(const std::shared_ptr<detail::Grant>& grant, Done done) noexcept {
  // Inside a callback the caller may wait for `done`.
  if (!done || is_foreign() || is_notifying_here()) return grant->release(std::move(done));
  or_end([&] {
    grant->release([this, grant, done = std::move(done)](error_code ec) mutable {
      when_quiet([done = std::move(done), ec]() mutable { done(ec); });
    });
  });
}

void Notifier::when_quiet(detail::UniqueFunction<void()> job) {
  {
    const auto locked = lock();
    if (notifying_ != std::thread::id()) {
      when_quiet_ = std::move(job);
      return;
    }
  }
  job();
}

}  // namespace dlock::core
