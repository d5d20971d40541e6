// SPDX-License-Identifier: Apache-2.0
#include "dlock/testing/fake_handle.hpp"

#include <atomic>
#include <stdexcept>
#include <utility>

#include "core/store/notifier.hpp"
#include "dlock/detail/grant.hpp"

namespace dlock::testing {

/// A command waits until the callbacks of the command before have returned, and runs its own. A
/// command inside a callback returns at once: its callbacks run when all have heard the change
/// before.
class FakeGrant final : public detail::Grant, public std::enable_shared_from_this<FakeGrant> {
 public:
  explicit FakeGrant(FakeIdentity identity) {
    identity_.name = std::move(identity.name);
    identity_.store = std::move(identity.store);
    identity_.token = identity.token;
    identity_.mode = identity.mode;
  }

  const Identity& identity() const noexcept override { return identity_; }
  HandleState state() noexcept override { return notifier_.state(); }
  LossReason reason() const noexcept override { return notifier_.reason(); }
  std::optional<std::chrono::nanoseconds> remaining() noexcept override {
    const auto lock = notifier_.lock();
    return notifier_.has_ended() ? std::chrono::nanoseconds::zero() : remaining_;
  }
  std::stop_token stop_token() const noexcept override { return notifier_.stop_token(); }
  void on_state(StateCallback callback) override;
  void hand_to_mutex() noexcept override { is_of_mutex_ = true; }
  void downgrade(Done done) noexcept override;
  void release(Done done) noexcept override;
  void release_quietly(Done done) noexcept override {
    notifier_.release_quietly(shared_from_this(), std::move(done));
  }
  void wait_quiet() noexcept override { notifier_.wait_quiet(); }

  void take_handle();
  void change(HandleState from, HandleState to, LossReason reason);
  void set_remaining(std::optional<std::chrono::nanoseconds> remaining) {
    const auto lock = notifier_.lock();
    remaining_ = remaining;
  }
  void answer_release(error_code answer) {
    const auto lock = notifier_.lock();
    answer_ = answer;
  }
  std::optional<error_code> release_result() {
    const auto lock = notifier_.lock();
    return result_;
  }
  bool is_of_mutex() const { return is_of_mutex_; }

 private:
  void notify(core::Notifier::Lock lock);

  Identity identity_;
  std::atomic<bool> is_taken_ = false;
  std::atomic<bool> is_of_mutex_ = false;
  core::Notifier notifier_;
  // Its lock guards:
  std::optional<std::chrono::nanoseconds> remaining_;
  error_code answer_;
  std::optional<error_code> result_;  ///< not empty: the handle has let go
};

void FakeGrant::on_state(StateCallback callback) {
  if (!notifier_.is_notifying_here()) {
    notifier_.add(std::move(callback));
    return notify(notifier_.lock());
  }
  notifier_.add(callback, false);
  if (state() != HandleState::held) callback(state(), reason());
}

void FakeGrant::change(HandleState from, HandleState to, LossReason reason) {
  auto lock = notifier_.lock();
  notifier_.wait_turn(lock);
  if (to != HandleState::lost && state() != from) return;
  notifier_.become(lock, to, reason);
  notify(std::move(lock));
}

void FakeGrant::notify(core::Notifier::Lock lock) {
  notifier_.wait_turn(lock);
  if (notifier_.begin(lock)) notifier_.notify(lock);
}

void FakeGrant::downgrade(Done done) noexcept {
  const bool was_lost = state() == HandleState::lost;
  if (!was_lost) identity_.mode = Mode::shared;
  done(was_lost ? make_error_code(errc::lock_lost) : error_code());
}

void FakeGrant::release(Done done) noexcept {
  auto lock = notifier_.lock();
  notifier_.become(lock, HandleState::released, LossReason::none);
  notifier_.leave(lock);
  const bool is_lost = state() == HandleState::lost;
  const auto result = is_lost ? make_error_code(errc::lock_lost) : answer_;
  result_ = result;
  lock.unlock();
  if (done) done(result);
}

void FakeGrant::take_handle() {
  if (is_taken_.exchange(true)) {
    throw std::logic_error("FakeHandle: the handle of '" + identity_.name + "' was taken before");
  }
}

FakeHandle::FakeHandle(FakeIdentity identity)
    : grant_(std::make_shared<FakeGrant>(std::move(identity))) {}

LockHandle FakeHandle::handle() {
  grant_->take_handle();
  return LockHandle(grant_);
}

void FakeHandle::become_suspect() {
  grant_->change(HandleState::held, HandleState::suspect, LossReason::none);
}

void FakeHandle::become_held() {
  grant_->change(HandleState::suspect, HandleState::held, LossReason::none);
}

void FakeHandle::lose(LossReason reason) {
  grant_->change(HandleState::held, HandleState::lost, reason);
}

void FakeHandle::set_remaining(std::optional<std::chrono::nanoseconds> remaining) {
  grant_->set_remaining(remaining);
}

void FakeHandle::answer_release(error_code answer) { grant_->answer_release(answer); }

bool FakeHandle::is_released() const { return grant_->release_result().has_value(); }

std::optional<error_code> FakeHandle::release_result() const { return grant_->release_result(); }

bool FakeHandle::is_of_mutex() const { return grant_->is_of_mutex(); }

}  // namespace dlock::testing
