// SPDX-License-Identifier: Apache-2.0
//
// Those who wait for a lock: one on a thread of its own, or many of one program at once.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include "dlock/async.hpp"
#include "dlock/distributed_lock.hpp"
#include "testkit/await.hpp"

namespace dlock::testkit {

inline std::future<LockHandle> acquire_later(const std::shared_ptr<DistributedLock>& lock) {
  return std::async(std::launch::async,
                    [lock] { return lock->acquire({.wait = std::chrono::seconds(60)}); });
}

/// Who is granted the lock stays here until he is taken out. It outlives all of them.
class ManyWaiters {
 public:
  ManyWaiters(const std::shared_ptr<DistributedLock>& lock, int count) {
    for (int i = 0; i < count; ++i) {
      lock->async_acquire({.wait = std::chrono::seconds(120)},
                          [this](error_code ec, LockHandle handle) {
                            ASSERT_FALSE(ec) << ec.message();
                            const std::lock_guard guard(mutex_);
                            granted_.push_back(std::move(handle));
                            changed_.notify_all();
                          });
    }
  }
  ManyWaiters(const ManyWaiters&) = delete;
  ManyWaiters& operator=(const ManyWaiters&) = delete;

  /// Waits for the next one; nobody else has been granted it.
  LockHandle take() {
    std::unique_lock guard(mutex_);
    EXPECT_TRUE(changed_.wait_until(guard, patience(), [&] { return !granted_.empty(); }));
    auto handle = std::move(granted_.front());
    granted_.pop_front();
    EXPECT_TRUE(granted_.empty());
    return handle;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LockHandle> granted_;
};

}  // namespace dlock::testkit
