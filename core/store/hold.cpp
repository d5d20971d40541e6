// SPDX-License-Identifier: Apache-2.0
#include "core/store/hold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <typeinfo>
#include <utility>

#include "core/store/host.hpp"
#include "core/store/store.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/fork.hpp"

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

Hold::Hold(const Hold& claimed, std::shared_ptr<HoldDependency> dependency)
    : host_(claimed.host_),
      store_(claimed.store_),
      identity_(claimed.identity_),
      claim_(claimed.claim_),
      generation_(claimed.generation_),
      dependency_(std::move(dependency)),
      deadline_(kNever.time_since_epoch().count()) {}

bool Hold::is_foreign() const noexcept { return fork_generation() != generation_; }

HandleState Hold::state() noexcept {
  const auto now_state = state_.load(std::memory_order_acquire);
  if (is_final(now_state)) return now_state;
  if (is_foreign()) {
    reason_.store(LossReason::closed, std::memory_order_release);
    return HandleState::lost;
  }
  if (remaining() == Duration::zero()) {
    change(HandleState::lost, why_over());
    return state_.load(std::memory_order_acquire);
  }
  return now_state;
}

// The store's word counts for more: then nothing of it is left to give back.
LossReason Hold::why_over() const noexcept {
  const auto now = host_->env().now();
  if (now >= promised()) return at_deadline();
  if (dependency_ && now >= dependency_->until()) return dependency_->why();
  const auto why = bound_.why(now);
  return why == LossReason::none ? LossReason::expired : why;
}

TimePoint Hold::until() const noexcept {
  if (is_foreign() || is_final(state_.load(std::memory_order_acquire))) return TimePoint::min();
  const auto until = dependency_ ? std::min(promised(), dependency_->until()) : promised();
  return std::min(until, bound_.until());
}

bool Hold::has_ended() const noexcept { return is_final(state_.load(std::memory_order_acquire)); }

bool Hold::is_left() noexcept {
  const std::lock_guard lock(mutex_);
  return is_left_;
}

void Hold::renew_within(Duration time) {
  if (is_foreign()) return;
  host_->post([self = shared_from_this(), time] {
    if (const auto at = self->store_.lock()) at->renew_within(*self, time);
  });
}

// First whether it is over: a moment that has passed is not moved.
void Hold::progress() noexcept {
  if (!bound_.wants_progress() || is_final(state())) return;
  bound_.progress(host_->env().now());
}

std::optional<Duration> Hold::remaining() noexcept {
  const auto deadline = until();
  if (deadline == TimePoint::min()) return Duration::zero();
  if (deadline == kNever) return std::nullopt;
  return std::max(deadline - host_->env().now(), Duration::zero());
}

bool Hold::is_sure() const noexcept {
  return state_.load(std::memory_order_acquire) == HandleState::held &&
         until() > host_->env().now();
}

void Hold::on_state(StateCallback callback) {
  if (is_foreign()) return;
  Callbacks added;
  added.push_back({std::move(callback)});
  state();  // may see that it is lost
  const std::lock_guard lock(mutex_);
  // What was before is not told: only where it stands now, if that is not held.
  const auto present = state_.load(std::memory_order_acquire);
  added.front().told = present == HandleState::suspect ? changes_ - 1 : changes_;
  callbacks_.splice(callbacks_.end(), added);
  if (present != HandleState::held) post_telling();
}

void Hold::on_contended(ContendedCallback callback) { listen({std::move(callback), {}}); }

void Hold::on_revoke(RevokeCallback callback) { listen({{}, std::move(callback)}); }

void Hold::listen(Notices::Listener listener) {
  if (is_foreign()) return;
  Notices::Listeners added;
  added.push_back(std::move(listener));
  const std::lock_guard lock(mutex_);
  notices_.add(added);
  post_telling();
}

void Hold::note_contended() noexcept {
  const std::lock_guard lock(mutex_);
  notices_.note_contended();
  if (notices_.has_listeners()) post_telling();
}

void Hold::note_asked(const Revocation& how) {
  const std::lock_guard lock(mutex_);
  notices_.note_asked(how);
  if (notices_.has_listeners()) post_telling();
}

void Hold::hand_out() noexcept {
  const std::lock_guard lock(mutex_);
  is_handed_out_ = true;
  if (state_.load(std::memory_order_acquire) != HandleState::lost) return;
  loss_is_due_ = true;
  post_telling();
}

std::optional<Loss> Hold::loss_at_release() {
  const std::lock_guard lock(mutex_);
  if (!is_handed_out_) return std::nullopt;
  return Loss{identity_.name,
              identity_.store,
              identity_.token,
              LossReason::removed,
              of_mutex_.load(std::memory_order_acquire),
              {}};
}

Hold::Audience Hold::audience() noexcept {
  if (stop_is_taken_.load(std::memory_order_acquire)) return Audience::owner;
  const std::lock_guard lock(mutex_);
  const bool is_empty = callbacks_.empty() && !notices_.has_listeners();
  return is_empty ? Audience::nobody : Audience::callbacks;
}

// What was lost has been taken care of when it was; nothing is left to give back.
void Hold::release(Done done) noexcept {
  or_end([&] {
    if (is_foreign()) {
      if (done) done(make_error_code(errc::closed));
      return;
    }
    const bool was_ours = give_back();
    leave();
    if (!was_ours) {
      let_go();
      if (done) done(make_error_code(errc::lock_lost));
      return;
    }
    if (dependency_ && dependency_->take_back(*this, done)) return;
    host_->release(shared_from_this(), std::move(done));
  });
}

void Hold::downgrade(Done done) {
  if (is_foreign()) return done(make_error_code(errc::closed));
  if (state() == HandleState::lost) return done(make_error_code(errc::lock_lost));
  const auto told = std::make_shared<Done>(std::move(done));
  const bool posted = host_->post([self = shared_from_this(), told] {
    const auto at = self->store_.lock();
    if (!at) return (*told)(make_error_code(errc::closed));
    at->downgrade(self, told);
  });
  if (!posted) (*told)(make_error_code(errc::closed));
}

void Hold::export_grant(std::chrono::milliseconds within, Exported done) {
  if (is_foreign()) return done(make_error_code(errc::closed), {});
  const auto told = std::make_shared<Exported>(std::move(done));
  const bool posted = host_->post([self = shared_from_this(), within, told] {
    const auto at = self->store_.lock();
    if (!at) return (*told)(make_error_code(errc::closed), {});
    at->export_grant(self, within, told);
  });
  if (!posted) (*told)(make_error_code(errc::closed), {});
}

void Hold::end_export() noexcept {
  stop_.request_stop();
  wait_quiet();
}

void Hold::release_quietly(Done done) noexcept {
  // Inside a callback of its own the caller may well wait for `done`.
  if (!done || is_foreign() || is_telling_here()) return release(std::move(done));
  or_end([&] {
    release([self = shared_from_this(), done = std::move(done)](error_code ec) mutable {
      self->when_quiet([done = std::move(done), ec]() mutable { done(ec); });
    });
  });
}

bool Hold::give_back() noexcept {
  if (state() == HandleState::lost) return false;
  return change(HandleState::released, LossReason::none);
}

bool Hold::give_away() noexcept {
  if (!give_back()) return false;
  given_away_ = true;
  leave();
  return true;
}

void Hold::let_go() {
  if (!dependency_) return;
  host_->post([dependency = dependency_] { dependency->on_let_go(); });
}

void Hold::move_deadline(TimePoint deadline) noexcept {
  deadline_.store(deadline.time_since_epoch().count(), std::memory_order_release);
}

void Hold::become(HandleState state, LossReason reason) noexcept { change(state, reason); }

std::string Hold::broken_by() {
  std::string by;
  {
    const std::lock_guard lock(mutex_);
    if (broken_by_) by = *broken_by_;
  }
  return by.empty() && dependency_ ? dependency_->broken_by() : by;
}

void Hold::set_broken_by(std::string by) {
  auto text = std::make_unique<const std::string>(std::move(by));
  const std::lock_guard lock(mutex_);
  broken_by_ = std::move(text);
}

bool Hold::change(HandleState state, LossReason reason) noexcept {
  const std::lock_guard lock(mutex_);
  const auto present = state_.load(std::memory_order_acquire);
  if (is_final(present) || present == state) return false;
  reason_.store(reason, std::memory_order_release);
  state_.store(state, std::memory_order_release);
  // Our own release is no news to who asked for it.
  if (state == HandleState::released) {
    if (!is_posted_) post_to_loop(std::exchange(when_told_, {}));
    return true;
  }
  if (state == HandleState::lost) {
    stop_is_due_ = true;
    loss_is_due_ = is_handed_out_;
  } else {
    ++changes_;
  }
  if (stop_is_due_ || !callbacks_.empty()) post_telling();
  if (dependency_) dependency_->on_change(state, reason);
  if (state == HandleState::lost && dependency_) {
    or_end([&] { post_to_loop([to = dependency_, reason] { to->on_lost(reason); }); });
  }
  return true;
}

void Hold::leave() noexcept {
  Job at_drop;
  {
    const std::lock_guard lock(mutex_);
    is_left_ = true;
    at_drop = std::exchange(at_drop_, {});
    post_to_loop(std::exchange(when_left_, {}));
  }
  if (at_drop) at_drop();
}

void Hold::at_drop(Job job) {
  {
    const Lock lock(mutex_);
    if (!is_left_) {
      at_drop_ = std::move(job);
      return;
    }
  }
  if (job) job();
}

void Hold::wait_quiet() noexcept {
  if (is_foreign()) return;
  const auto me = std::this_thread::get_id();
  Lock lock(mutex_);
  // run() itself drops them when it comes back from the callback that we are in.
  if (telling_ == me) return;
  quiet_.wait(lock, [this] { return telling_ == std::thread::id(); });
  Callbacks dropped;
  dropped.swap(callbacks_);
  const auto unheard = notices_.drop();
  lock.unlock();
}

bool Hold::is_telling_here() noexcept {
  const Lock lock(mutex_);
  return telling_ == std::this_thread::get_id();
}

void Hold::when_quiet(Job job) {
  {
    const Lock lock(mutex_);
    if (telling_ != std::thread::id()) {
      when_quiet_ = std::move(job);
      return;
    }
  }
  job();
}

void Hold::when_told(Job job) {
  const Lock lock(mutex_);
  if (is_told()) {
    post_to_loop(std::move(job));
  } else {
    when_told_ = std::move(job);
  }
}

void Hold::when_left(Job job) {
  const Lock lock(mutex_);
  if (is_left_) {
    post_to_loop(std::move(job));
  } else {
    when_left_ = std::move(job);
  }
}

/// Its end, that is.
bool Hold::is_told() const noexcept {
  return is_final(state_.load(std::memory_order_acquire)) && !is_posted_;
}

void Hold::post_to_loop(Job job) noexcept {
  if (!job) return;
  host_->env().post(std::move(job));
}

void Hold::post_callback(Job job) {
  class Posted final : public Errand {
   public:
    explicit Posted(Job what) : job_(std::move(what)) {}
    void run() override { job_(); }

   private:
    Job job_;
  };
  host_->post_callback(std::make_shared<Posted>(std::move(job)));
}

void Hold::post_telling() noexcept {
  if (!std::exchange(is_posted_, true)) host_->post_callback(shared_from_this());
}

// The stop first, even before changes that came before the loss: it is what ends the work.
void Hold::run() {
  Lock lock(mutex_);
  while (true) {
    if (std::exchange(stop_is_due_, false)) {
      outside(lock, [this] { stop_.request_stop(); });
    } else if (std::exchange(loss_is_due_, false)) {
      outside(lock, [this] {
        host_->on_loss({identity_.name, identity_.store, identity_.token, reason(),
                        of_mutex_.load(std::memory_order_acquire), broken_by()});
      });
    } else if (auto* const callback = next_to_tell()) {
      tell(lock, *callback);
    } else if (const auto* const listener = next_to_notify()) {
      tell_notice(lock, *listener);
    } else if ((!callbacks_.empty() || notices_.has_listeners()) &&
               (is_left_ || is_final(state_.load(std::memory_order_acquire)))) {
      drop_callbacks(lock);
    } else {
      break;
    }
  }
  is_posted_ = false;
  if (is_told()) post_to_loop(std::exchange(when_told_, {}));
  auto quiet = std::exchange(when_quiet_, {});
  lock.unlock();
  if (quiet) quiet();
}

/// Change by change, and of each change callback by callback.
Hold::Callback* Hold::next_to_tell() noexcept {
  if (is_left_) return nullptr;
  Callback* next = nullptr;
  for (auto& callback : callbacks_) {
    if (callback.told < changes_ && (next == nullptr || callback.told < next->told)) {
      next = &callback;
    }
  }
  if (next != nullptr || state_.load(std::memory_order_acquire) != HandleState::lost) return next;
  const auto found = std::find_if(callbacks_.begin(), callbacks_.end(),
                                  [](const Callback& callback) { return !callback.told_lost; });
  return found == callbacks_.end() ? nullptr : &*found;
}

void Hold::tell(Lock& lock, Callback& callback) {
  auto told = HandleState::lost;
  if (callback.told < changes_) {
    told = ++callback.told % 2 == 1 ? HandleState::suspect : HandleState::held;
  } else {
    callback.told_lost = true;
  }
  const auto why = told == HandleState::lost ? reason() : LossReason::none;
  outside(lock, [&] { callback.call(told, why); });
}

// Who has lost it, or let go of it, has nothing to give way with.
const Notices::Listener* Hold::next_to_notify() noexcept {
  return is_left_ || has_ended() ? nullptr : notices_.next();
}

void Hold::tell_notice(Lock& lock, const Notices::Listener& listener) {
  const auto how = notices_.asked();
  outside(lock, [&] { call(listener, how); });
}

/// What they have captured may end here, and is user code, too.
void Hold::drop_callbacks(Lock& lock) {
  Callbacks dropped;
  dropped.swap(callbacks_);
  auto unheard = notices_.drop();
  outside(lock, [&] {
    dropped.clear();
    unheard.clear();
  });
}

template <class UserCode>
void Hold::outside(Lock& lock, UserCode code) {
  telling_ = std::this_thread::get_id();
  lock.unlock();
  try {
    code();
  } catch (const std::exception& error) {
    host_->log(LogLevel::error, fmt::format("lock '{}': a state callback threw an exception: {}",
                                            identity_.name, error.what()));
  } catch (...) {
    host_->log(LogLevel::error, "a state callback threw an exception of an unknown type");
  }
  lock.lock();
  telling_ = std::thread::id();
  quiet_.notify_all();
}

std::shared_ptr<Hold> HandleAccess::hold(const LockHandle& handle) noexcept {
  return hold(detail::GrantAccess::grant(handle));
}

std::shared_ptr<Hold> HandleAccess::hold(const std::shared_ptr<detail::Grant>& grant) noexcept {
  if (!grant) return nullptr;
  const auto& what = *grant;
  // Hold is final, so that nothing else need be looked at.
  if (typeid(what) != typeid(Hold)) return nullptr;
  return std::static_pointer_cast<Hold>(grant);
}

}  // namespace dlock::core

namespace dlock::inline v0 {

int inheritable_descriptor(const LockHandle& handle) noexcept {
  const auto& grant = detail::GrantAccess::grant(handle);
  return grant ? grant->inherit() : -1;
}

}  // namespace dlock::inline v0
