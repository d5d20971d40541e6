// SPDX-License-Identifier: Apache-2.0
//
// One value, handed from the loop to the thread that blocks for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/loop/halt_poll.hpp"

namespace dlock::core {

/// Thread safety: one thread sets, one waits. Both keep it alive, by a shared_ptr.
template <class T>
class Reply {
 public:
  /// Once.
  void set(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
      told_.notify_one();
    }
    // Last: who looks does not meet the locked mutex.
    here_.store(true, std::memory_order_release);
  }

  /// Once. Has no deadline of its own: deadlines are the loop's business.
  T wait() {
    static thread_local HaltPoll idle;
    idle.wait([this] { return here_.load(std::memory_order_acquire); },
              [this] {
                std::unique_lock lock(mutex_);
                told_.wait(lock, [this] { return value_.has_value(); });
              });
    const std::lock_guard lock(mutex_);
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<T> value_;
  std::atomic<bool> here_ = false;
};

}  // namespace dlock::core
