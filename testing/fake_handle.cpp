// SPDX-License-Identifier: Apache-2.0
#include "dlock/testing/fake_handle.hpp"

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "dlock/detail/grant.hpp"

namespace dlock::testing {

/// Changes are told one after the other: a command waits for the callbacks of the one before; what
/// a callback itself commands is told when all have heard the change before.
class FakeGrant final : public detail::Grant {
 public:
  explicit FakeGrant(FakeIdentity identity) {
    identity_.name = std::move(identity.name);
    identity_.store = std::move(identity.store);
    identity_.token = identity.token;
    identity_.mode = identity.mode;
  }

  const Identity& identity() const noexcept override { return identity_; }
  HandleState state() noexcept override {
    const Lock lock(mutex_);
    return state_;
  }
  LossReason reason() const noexcept override {
    const Lock lock(mutex_);
    return reason_;
  }
  std::optional<std::chrono::nanoseconds> remaining() noexcept override {
    const Lock lock(mutex_);
    return is_final() ? std::chrono::nanoseconds::zero() : remaining_;
  }
  std::stop_token stop_token() const noexcept override { return stop_.get_token(); }
  void on_state(StateCallback callback) override;
  void hand_to_mutex() noexcept override {
    const Lock lock(mutex_);
    is_of_mutex_ = true;
  }
  void downgrade(Done done) noexcept override;
  void release(Done done) noexcept override;
  void release_quietly(Done done) noexcept override;
  void wait_quiet() noexcept override;

  void take_handle();
  void change(HandleState from, HandleState to, LossReason reason);
  void set_remaining(std::optional<std::chrono::nanoseconds> remaining) {
    const Lock lock(mutex_);
    remaining_ = remaining;
  }
  void answer_release(error_code answer) {
    const Lock lock(mutex_);
    answer_ = answer;
  }
  std::optional<error_code> release_result() const {
    const Lock lock(mutex_);
    return result_;
  }
  bool is_of_mutex() const {
    const Lock lock(mutex_);
    return is_of_mutex_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Change {
    HandleState to;
    LossReason reason;
  };
  struct Callback {
    StateCallback call;
    std::size_t heard;  ///< so many of the changes
  };

  bool is_final() const noexcept {
    return state_ == HandleState::lost || state_ == HandleState::released;
  }
  bool is_telling_here() const noexcept { return telling_ == std::this_thread::get_id(); }
  void wait_for_turn(Lock& lock) {
    quiet_.wait(lock, [this] { return depth_ == 0 || is_telling_here(); });
  }
  template <class UserCode>
  void outside(Lock& lock, UserCode code);
  void tell_changes(Lock& lock);
  void become_quiet(Lock& lock);
  error_code end();

  Identity identity_;
  mutable std::mutex mutex_;
  HandleState state_ = HandleState::held;
  LossReason reason_ = LossReason::none;
  std::optional<std::chrono::nanoseconds> remaining_;
  std::stop_source stop_;
  std::vector<Change> changes_;
  std::size_t told_ = 0;           ///< so many of them
  std::list<Callback> callbacks_;  ///< only grows until it is quiet after the release
  bool is_taken_ = false;
  bool is_of_mutex_ = false;
  error_code answer_;
  std::optional<error_code> result_;  ///< not empty: the handle has let go
  std::thread::id telling_;
  int depth_ = 0;  ///< of callbacks within callbacks on the thread that tells
  std::condition_variable quiet_;
  Done when_quiet_;
};

template <class UserCode>
void FakeGrant::outside(Lock& lock, UserCode code) {
  telling_ = std::this_thread::get_id();
  ++depth_;
  lock.unlock();
  code();
  lock.lock();
  if (--depth_ > 0) return;
  telling_ = {};
  quiet_.notify_all();
}

void FakeGrant::on_state(StateCallback callback) {
  Lock lock(mutex_);
  wait_for_turn(lock);
  if (result_) return;
  callbacks_.push_back({std::move(callback), changes_.size()});
  if (state_ == HandleState::held) return;
  const auto& added = callbacks_.back();
  outside(lock, [&added, state = state_, reason = reason_] { added.call(state, reason); });
  become_quiet(lock);
}

void FakeGrant::change(HandleState from, HandleState to, LossReason reason) {
  Lock lock(mutex_);
  wait_for_turn(lock);
  const bool applies = to == HandleState::lost ? !is_final() : state_ == from;
  if (!applies) return;
  state_ = to;
  reason_ = reason;
  changes_.push_back({to, reason});
  if (is_telling_here()) return;
  tell_changes(lock);
  become_quiet(lock);
}

void FakeGrant::tell_changes(Lock& lock) {
  for (; told_ < changes_.size(); ++told_) {
    const auto news = changes_[told_];
    if (news.to == HandleState::lost) outside(lock, [this] { stop_.request_stop(); });
    for (auto& callback : callbacks_) {
      if (result_) break;
      if (callback.heard > told_) continue;
      outside(lock, [&] { callback.call(news.to, news.reason); });
    }
  }
}

void FakeGrant::become_quiet(Lock& lock) {
  if (depth_ > 0) return;
  auto told = std::exchange(when_quiet_, {});
  const auto result = result_.value_or(error_code());
  lock.unlock();
  if (told) told(result);
}

error_code FakeGrant::end() {
  const bool is_lost = state_ == HandleState::lost;
  if (!is_lost) state_ = HandleState::released;
  result_ = is_lost ? make_error_code(errc::lock_lost) : answer_;
  return *result_;
}

void FakeGrant::downgrade(Done done) noexcept {
  const bool was_lost = state() == HandleState::lost;
  if (!was_lost) identity_.mode = Mode::shared;
  done(was_lost ? make_error_code(errc::lock_lost) : error_code());
}

void FakeGrant::release(Done done) noexcept {
  Lock lock(mutex_);
  const auto result = end();
  lock.unlock();
  if (done) done(result);
}

void FakeGrant::release_quietly(Done done) noexcept {
  Lock lock(mutex_);
  const auto result = end();
  if (done && depth_ > 0 && !is_telling_here()) {
    when_quiet_ = std::move(done);
    return;
  }
  lock.unlock();
  if (done) done(result);
}

void FakeGrant::wait_quiet() noexcept {
  Lock lock(mutex_);
  if (is_telling_here()) return;
  wait_for_turn(lock);
  std::list<Callback> dropped;
  dropped.swap(callbacks_);
  lock.unlock();
}

void FakeGrant::take_handle() {
  const Lock lock(mutex_);
  if (std::exchange(is_taken_, true)) {
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
