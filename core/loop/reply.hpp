// SPDX-License-Identifier: Apache-2.0
//
// One value, handed from the loop to the thread that blocks for it.
//
// A POSIX semaphore, used only by a thread that sleeps. A condition variable wakes its waiter into
// the mutex that its waker still holds. std::atomic's wait() and std::binary_semaphore yield the
// processor four times before they sleep. With many waiters each of these is one more switch of
// threads.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/loop/deliveries.hpp"
#include "core/loop/driving.hpp"
#include "core/loop/halt_poll.hpp"

namespace dlock::core {

/// Thread safety: one thread sets, one waits. Both keep it alive, by a shared_ptr.
template <class T>
class Reply final : public Awaited {
 public:
  Reply() noexcept { ::sem_init(&told_, 0, 0); }
  ~Reply() override { ::sem_destroy(&told_); }
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  /// Once.
  void set(T value) {
    value_ = std::move(value);
    auto seen = State::awaited;
    if (state_.compare_exchange_strong(seen, State::here, std::memory_order_acq_rel)) return;
    // First: the woken caller may call again at once, and leads the loop if no other thread sleeps.
    if (loop_) loop_->on_answer();
    // A thread that polls may be gone from here on; one that sleeps stays until it is woken.
    const auto was = state_.exchange(State::here, std::memory_order_acq_rel);
    if (was == State::asleep) Deliveries::wake(told_);
  }

  bool is_over() const noexcept override {
    return state_.load(std::memory_order_acquire) == State::here;
  }

  /// Called once. The work that sets the value was posted under `intent`. No deadline here:
  /// deadlines are the loop's business.
  T wait(Driving::Intent& intent) {
    intent.wait(*this);
    return std::move(*value_);
  }

  void sleep(std::shared_ptr<Driving> loop) override {
    if (is_over()) return;
    loop_ = std::move(loop);
    if (loop_) loop_->follow();
    auto seen = State::awaited;
    if (!state_.compare_exchange_strong(seen, State::looked_for, std::memory_order_acq_rel)) {
      if (loop_) loop_->on_answer();
      return;
    }
    if (!loop_ || !loop_->is_quiet()) return sleep_now();
    static thread_local HaltPoll idle;
    idle.wait([this] { return is_over(); }, [this] { sleep_now(); });
  }

 private:
  enum class State : std::uint8_t { awaited, looked_for, asleep, here };

  void sleep_now() noexcept {
    auto seen = State::looked_for;
    if (!state_.compare_exchange_strong(seen, State::asleep, std::memory_order_acq_rel)) return;
    while (::sem_wait(&told_) != 0 && errno == EINTR) {
    }
  }

  std::atomic<State> state_ = State::awaited;
  sem_t told_{};
  std::optional<T> value_;
  std::shared_ptr<Driving> loop_;  ///< whose answer is slept for
};

}  // namespace dlock::core
