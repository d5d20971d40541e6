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

Hold::Hold(std::shared_ptr<Host> host, std::weak_ptr<Store> store, Identity identity,
           const ClaimPtr& claim, TimePoint deadline)
    : host_(std::move(host)),
      store_(std::move(store)),
      identity_(std::move(identity)),
      claim_(claim),
      deadline_(deadline.time_since_epoch().count()) {}

Hold::Hold(const Hold& claimed, std::shared_ptr<HoldDependency> dependency)
    : host_(claimed.host_),
      store_(claimed.store_),
      identity_(claimed.identity_),
      claim_(claimed.claim_),
      dependency_(std::move(dependency)),
      deadline_(kNever.time_since_epoch().count()),
      notifier_(claimed.notifier_.generation()) {}

HandleState Hold::state() noexcept {
  const auto now_state = notifier_.state();
  if (is_final(now_state)) return now_state;
  if (is_foreign()) return HandleState::lost;
  if (remaining() == Duration::zero()) {
    change(HandleState::lost, why_over());
    return notifier_.state();
  }
  return now_state;
}

LossReason Hold::reason() const noexcept {
  return is_foreign() && !has_ended() ? LossReason::closed : notifier_.reason();
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
  if (is_foreign() || has_ended()) return TimePoint::min();
  const auto until = dependency_ ? std::min(promised(), dependency_->until()) : promised();
  return std::min(until, bound_.until());
}

bool Hold::is_left() noexcept { return notifier_.is_left(notifier_.lock()); }

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
  return notifier_.state() == HandleState::held && until() > host_->env().now();
}

void Hold::on_state(StateCallback callback) {
  if (!is_foreign()) state();  // may see that it is lost
  listen(std::move(callback));
}

void Hold::on_contended(ContendedCallback callback) { listen(std::move(callback)); }

void Hold::on_revoke(RevokeCallback callback) { listen(std::move(callback)); }

void Hold::listen(Notifier::Callback callback) {
  if (is_foreign()) return;
  notifier_.add(std::move(callback));
  start_notifying(notifier_.lock());
}

void Hold::note_contended() noexcept {
  notifier_.note_contended();
  start_notifying(notifier_.lock());
}

void Hold::note_asked(const Revocation& how) {
  notifier_.note_request(how);
  start_notifying(notifier_.lock());
}

void Hold::hand_out() noexcept {
  const auto lock = notifier_.lock();
  notifier_.report_loss(lock);
  start_notifying(lock);
}

std::optional<Loss> Hold::loss_at_release() {
  if (!notifier_.reports_loss(notifier_.lock())) return std::nullopt;
  return loss(LossReason::removed, {});
}

Loss Hold::loss(LossReason why, std::string by) const {
  return {identity_.name,       identity_.store, identity_.token, why,
          is_handed_to_mutex(), std::move(by)};
}

Hold::Audience Hold::audience() noexcept {
  if (stop_is_taken_.load(std::memory_order_acquire)) return Audience::owner;
  const bool has_any = notifier_.has_listeners(notifier_.lock());
  return has_any ? Audience::callbacks : Audience::nobody;
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
  notifier_.request_stop();
  wait_quiet();
}

void Hold::release_quietly(Done done) noexcept {
  notifier_.release_quietly(shared_from_this(), std::move(done));
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
    const auto lock = notifier_.lock();
    if (broken_by_) by = *broken_by_;
  }
  return by.empty() && dependency_ ? dependency_->broken_by() : by;
}

void Hold::set_broken_by(std::string by) {
  auto text = std::make_unique<const std::string>(std::move(by));
  const auto lock = notifier_.lock();
  broken_by_ = std::move(text);
}

bool Hold::change(HandleState state, LossReason reason) noexcept {
  const auto lock = notifier_.lock();
  if (!notifier_.become(lock, state, reason)) return false;
  // The callbacks are not told of the holder's own release.
  if (state == HandleState::released) {
    if (notifier_.is_settled(lock)) post_to_loop(std::exchange(when_told_, {}));
    return true;
  }
  start_notifying(lock);
  if (dependency_) dependency_->on_change(state, reason);
  if (state == HandleState::lost && dependency_) {
    or_end([&] { post_to_loop([to = dependency_, reason] { to->on_lost(reason); }); });
  }
  return true;
}

void Hold::leave() noexcept {
  Job at_drop;
  {
    const auto lock = notifier_.lock();
    notifier_.leave(lock);
    at_drop = std::exchange(at_drop_, {});
    post_to_loop(std::exchange(when_left_, {}));
  }
  if (at_drop) at_drop();
}

void Hold::at_drop(Job job) {
  {
    const auto lock = notifier_.lock();
    if (!notifier_.is_left(lock)) {
      at_drop_ = std::move(job);
      return;
    }
  }
  if (job) job();
}

void Hold::wait_quiet() noexcept { notifier_.wait_quiet(); }

void Hold::when_told(Job job) {
  const auto lock = notifier_.lock();
  if (notifier_.is_settled(lock)) {
    post_to_loop(std::move(job));
  } else {
    when_told_ = std::move(job);
  }
}

void Hold::when_left(Job job) {
  const auto lock = notifier_.lock();
  if (notifier_.is_left(lock)) {
    post_to_loop(std::move(job));
  } else {
    when_left_ = std::move(job);
  }
}

void Hold::post_to_loop(Job job) noexcept {
  if (!job) return;
  host_->env().post(std::move(job));
}

void Hold::post_callback(Job job) { host_->post_callback(make_errand(std::move(job))); }

void Hold::start_notifying(const Lock& lock) noexcept {
  if (notifier_.begin(lock)) host_->post_callback(shared_from_this());
}

void Hold::run() {
  Notifier::Hooks hooks;
  hooks.on_loss = [this] { host_->on_loss(loss(reason(), broken_by())); };
  hooks.on_thrown = [this](const std::exception_ptr& thrown) { log_thrown(thrown); };
  auto lock = notifier_.lock();
  notifier_.notify(lock, hooks);
  lock.lock();
  if (notifier_.is_settled(lock)) post_to_loop(std::exchange(when_told_, {}));
}

void Hold::log_thrown(const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    host_->log(LogLevel::error, fmt::format("lock '{}': a state callback threw an exception: {}",
                                            identity_.name, error.what()));
  } catch (...) {
    host_->log(LogLevel::error, "a state callback threw an exception of an unknown type");
  }
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
