// SPDX-License-Identifier: Apache-2.0
//
// One value, handed from the loop to the thread that blocks for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/loop/driving.hpp"
#include "core/loop/halt_poll.hpp"

namespace dlock::core {

/// Thread safety: one thread sets, one waits. Both keep it alive, by a shared_ptr.
template <class T>
class Reply final : public Awaited {
 public:
  /// Once.
  void set(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
      if (loop_) loop_->on_answer();
      told_.notify_one();
    }
    // Last: who looks does not meet the locked mutex.
    here_.store(true, std::memory_order_release);
  }

  bool is_over() const noexcept override { return here_.load(std::memory_order_acquire); }

  /// Once. What was to give the value was posted under `intent`. Has no deadline of its own:
  /// deadlines are the loop's business.
  T wait(Driving::Intent& intent) {
    intent.wait(*this);
    const std::lock_guard lock(mutex_);
    return std::move(*value_);
  }

  void sleep(std::shared_ptr<Driving> loop) override {
    {
      const std::lock_guard lock(mutex_);
      if (value_) return;
      if (loop) loop->follow();
      loop_ = std::move(loop);
    }
    static thread_local HaltPoll idle;
    idle.wait([this] { return is_over(); },
              [this] {
                std::unique_lock lock(mutex_);
                told_.wait(lock, [this] { return value_.has_value(); });
              });
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<T> value_;
  std::shared_ptr<Driving> loop_;  ///< whose answer is slept for
  std::atomic<bool> here_ = false;
};

}  // namespace dlock::core
