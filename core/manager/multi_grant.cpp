// SPDX-License-Identifier: Apache-2.0
#include "core/manager/multi_grant.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/loop/driving.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::core {

MultiGrant::MultiGrant(std::string name, std::size_t size, bool one_loop, Mode mode)
    : one_loop_(one_loop), generation_(fork_generation()), said_(size, HandleState::held) {
  identity_.name = std::move(name);
  identity_.mode = mode;
  parts_.reserve(size);
}

bool MultiGrant::is_foreign() const noexcept { return fork_generation() != generation_; }

void MultiGrant::add(LockHandle& part) {
  auto& store = identity_.store;
  const auto named = [&](const auto& other) { return other->identity().store == part.store(); };
  const bool is_new = std::none_of(parts_.begin(), parts_.end(), named);
  auto stores = is_new && !parts_.empty() ? store + ", " + part.store() : part.store();
  part.on_state([weak = weak_from_this(), at = parts_.size()](HandleState told, LossReason why) {
    if (const auto self = weak.lock()) self->on_part(at, told, why);
  });
  parts_.push_back(detail::GrantAccess::take(part));
  if (is_new) store = std::move(stores);
}

const detail::Grant* MultiGrant::lost_part() const noexcept {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [](const auto& part) {
    return part->state() == HandleState::lost;
  });
  return found == parts_.end() ? nullptr : found->get();
}

void MultiGrant::note(LossReason reason) noexcept {
  auto none = LossReason::none;
  reason_.compare_exchange_strong(none, reason, std::memory_order_acq_rel);
}

HandleState MultiGrant::state() noexcept {
  auto worst = HandleState::held;
  for (const auto& part : parts_) {
    const auto state = part->state();
    if (state == HandleState::lost) {
      note(part->reason());
      return state;
    }
    if (state != HandleState::held) worst = state;
  }
  return worst;
}

std::string MultiGrant::broken_by() {
  for (const auto& part : parts_) {
    if (part->state() != HandleState::lost || part->reason() != LossReason::broken) continue;
    return part->broken_by();
  }
  return {};
}

std::optional<std::chrono::nanoseconds> MultiGrant::remaining() noexcept {
  std::optional<std::chrono::nanoseconds> least;
  for (const auto& part : parts_) {
    const auto left = part->remaining();
    if (left && (!least || *left < *least)) least = left;
  }
  return least;
}

// Each of them learns that somebody listens: its manager's close() waits for who does.
std::stop_token MultiGrant::stop_token() const noexcept {
  for (const auto& part : parts_) std::ignore = part->stop_token();
  return stop_.get_token();
}

void MultiGrant::hand_to_mutex() noexcept {
  for (const auto& part : parts_) part->hand_to_mutex();
}

void MultiGrant::renew_within(std::chrono::nanoseconds time) {
  for (const auto& part : parts_) part->renew_within(time);
}

void MultiGrant::progress() noexcept {
  for (const auto& part : parts_) part->progress();
}

void MultiGrant::on_contended(ContendedCallback callback) {
  listen({std::move(callback), {}});
  for (const auto& part : parts_) {
    part->on_contended([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      {
        const Lock lock(self->mutex_);
        self->notices_.note_contended();
      }
      self->tell();
    });
  }
}

void MultiGrant::on_revoke(RevokeCallback callback) {
  const bool is_first = !hears_askings_.exchange(true);
  listen({{}, std::move(callback)});
  // Those that have been told already tell each new one of us soon.
  for (const auto& part : parts_) {
    part->on_revoke([weak = weak_from_this(), is_first](const Revocation& how) {
      const auto self = weak.lock();
      if (!self) return;
      if (is_first) {
        const Lock lock(self->mutex_);
        self->notices_.note_asked(how);
      }
      self->tell();
    });
  }
}

void MultiGrant::listen(Notices::Listener listener) {
  if (is_foreign()) return;
  Notices::Listeners added;
  added.push_back(std::move(listener));
  const Lock lock(mutex_);
  notices_.add(added);
}

// What comes is told when a part tells it. What is, has to be told on some thread, too: a part that
// is not held any more has one.
void MultiGrant::on_state(StateCallback callback) {
  if (is_foreign()) return;
  Callbacks added;
  added.push_back({std::move(callback)});
  detail::Grant* teller = nullptr;
  {
    const Lock lock(mutex_);
    const bool is_suspect = !is_lost_ && changes_ % 2 == 1;
    added.front().told = is_suspect ? changes_ - 1 : changes_;
    callbacks_.splice(callbacks_.end(), added);
    if (!is_lost_ && !is_suspect) return;
    const auto present = is_lost_ ? HandleState::lost : HandleState::suspect;
    const auto found = std::find(said_.begin(), said_.end(), present);
    teller = parts_[static_cast<std::size_t>(found - said_.begin())].get();
  }
  teller->on_state([weak = weak_from_this()](HandleState, LossReason) {
    if (const auto self = weak.lock()) self->tell();
  });
}

void MultiGrant::on_part(std::size_t at, HandleState state, LossReason reason) {
  {
    const Lock lock(mutex_);
    said_[at] = state;
    if (is_lost_) return;
    const auto says = [this](HandleState what) {
      return std::find(said_.begin(), said_.end(), what) != said_.end();
    };
    if (state == HandleState::lost) {
      note(reason);
      is_lost_ = true;
      stop_is_due_ = true;
    } else if (says(HandleState::suspect) != (changes_ % 2 == 1)) {
      ++changes_;
    }
  }
  tell();
}

// The stop first, even before changes that came before the loss: it is what ends the work.
void MultiGrant::tell() {
  Lock lock(mutex_);
  if (std::exchange(is_telling_, true)) return;
  while (true) {
    if (std::exchange(stop_is_due_, false)) {
      outside(lock, [this] { stop_.request_stop(); });
    } else if (auto* const callback = next_to_tell()) {
      tell_one(lock, *callback);
    } else if (const auto* const listener = is_left_ || is_lost_ ? nullptr : notices_.next()) {
      const auto how = notices_.asked();
      outside(lock, [&] { call(*listener, how); });
    } else if ((!callbacks_.empty() || notices_.has_listeners()) && (is_left_ || is_lost_)) {
      Callbacks dropped;
      dropped.swap(callbacks_);
      auto unheard = notices_.drop();
      outside(lock, [&] {
        dropped.clear();
        unheard.clear();
      });
    } else {
      break;
    }
  }
  is_telling_ = false;
  auto quiet = std::exchange(when_quiet_, {});
  const auto thrown = std::exchange(thrown_, nullptr);
  lock.unlock();
  if (quiet) quiet();
  // The part on whose thread this is logs it.
  if (thrown) std::rethrow_exception(thrown);
}

/// Change by change, and of each change callback by callback.
MultiGrant::Callback* MultiGrant::next_to_tell() noexcept {
  if (is_left_) return nullptr;
  Callback* next = nullptr;
  for (auto& callback : callbacks_) {
    if (callback.told < changes_ && (next == nullptr || callback.told < next->told)) {
      next = &callback;
    }
  }
  if (next != nullptr || !is_lost_) return next;
  const auto found = std::find_if(callbacks_.begin(), callbacks_.end(),
                                  [](const Callback& callback) { return !callback.told_lost; });
  return found == callbacks_.end() ? nullptr : &*found;
}

void MultiGrant::tell_one(Lock& lock, Callback& callback) {
  auto told = HandleState::lost;
  if (callback.told < changes_) {
    told = ++callback.told % 2 == 1 ? HandleState::suspect : HandleState::held;
  } else {
    callback.told_lost = true;
  }
  const auto why = told == HandleState::lost ? reason() : LossReason::none;
  outside(lock, [&] { callback.call(told, why); });
}

template <class UserCode>
void MultiGrant::outside(Lock& lock, UserCode code) {
  telling_ = std::this_thread::get_id();
  lock.unlock();
  std::exception_ptr thrown;
  try {
    code();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (!thrown_) thrown_ = std::move(thrown);
  telling_ = {};
  quiet_.notify_all();
}

void MultiGrant::release(Done done) noexcept {
  const auto self = shared_from_this();
  if (is_foreign()) {
    for (auto at = parts_.size(); at > 0; --at) parts_[at - 1]->release({});
    if (done) done(make_error_code(errc::closed));
    return;
  }
  const bool is_awaited = static_cast<bool>(done);
  {
    const Lock lock(mutex_);
    is_left_ = true;
    unanswered_ = parts_.size();
    released_ = std::move(done);
  }
  bool is_lost = false;
  or_end([&] {
    // Who waits for all must not run the loop of one of them: the others' answers would not end it.
    std::optional<Driving::Intent> apart;
    if (!one_loop_) apart.emplace();
    for (auto at = parts_.size(); at > 0; --at) {
      auto& part = *parts_[at - 1];
      Done told;
      if (is_awaited) told = [self](error_code ec) { self->on_released(ec); };
      part.release(std::move(told));
      if (part.state() != HandleState::lost) continue;
      note(part.reason());
      is_lost = true;
    }
  });
  if (is_lost) or_end([this] { see_to_stop(); });
}

void MultiGrant::on_released(error_code ec) {
  Done done;
  {
    const Lock lock(mutex_);
    if (ec && (!result_ || ec == errc::lock_lost)) result_ = ec;
    if (--unanswered_ > 0) return;
    done = std::move(released_);
  }
  if (done) done(result_);
}

/// After a loss that the part does not tell any more: it was given back just then.
void MultiGrant::see_to_stop() {
  {
    const Lock lock(mutex_);
    if (!std::exchange(is_lost_, true)) stop_is_due_ = true;
    if (!stop_is_due_ || is_telling_) return;
  }
  // It is left: no callback of it is called any more, so that no user code throws.
  post_callback([self = shared_from_this()] { self->tell(); });
}

void MultiGrant::release_quietly(Done done) noexcept {
  // Inside a callback of its own the caller may well wait for `done`.
  if (!done || is_foreign() || is_telling_here()) return release(std::move(done));
  or_end([&] {
    release([self = shared_from_this(), done = std::move(done)](error_code ec) mutable {
      {
        const Lock lock(self->mutex_);
        if (self->telling_ != std::thread::id()) {
          self->when_quiet_ = [done = std::move(done), ec]() mutable { done(ec); };
          return;
        }
      }
      done(ec);
    });
  });
}

bool MultiGrant::is_telling_here() noexcept {
  const Lock lock(mutex_);
  return telling_ == std::this_thread::get_id();
}

void MultiGrant::wait_quiet() noexcept {
  if (is_foreign()) return;
  Lock lock(mutex_);
  // tell() drops them when it comes back from the callback that we are in.
  if (telling_ == std::this_thread::get_id()) return;
  quiet_.wait(lock, [this] { return telling_ == std::thread::id(); });
  Callbacks dropped;
  dropped.swap(callbacks_);
  const auto unheard = notices_.drop();
  lock.unlock();
}

}  // namespace dlock::core
