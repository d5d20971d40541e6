// SPDX-License-Identifier: Apache-2.0
//
// The order of ending, with threads: stop what works, wait while renewing, then give back.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

LockManager open_quiet(const std::string& store) {
  return LockManager::open("memory://" + store, {.backends = {&memory::backend()},
                                                 .log = [](LogLevel, std::string_view) {}});
}

TEST(Closing, ARivalGetsTheLockOnlyAfterTheWorkerSaidThatItStopped) {
  auto manager = open_quiet("closing-rival");
  auto rivals = open_quiet("closing-rival");
  auto held = manager.lock("a")->acquire();
  const auto stop = held.stop_token();
  std::atomic<bool> has_stopped = false;
  std::thread worker([&has_stopped, stop, held = std::move(held)]() mutable {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [] { return false; });
    std::this_thread::sleep_for(200ms);  // what it has begun, it ends
    has_stopped = true;
    held.release();
  });
  std::atomic<bool> stopped_at_grant = false;
  std::thread rival([&] {
    const auto next = rivals.lock("a")->acquire();
    stopped_at_grant = has_stopped.load();
  });
  ASSERT_TRUE(eventually(patience(), [&] { return rivals.status("a").waiting.size() == 1; }));
  const auto start = std::chrono::steady_clock::now();
  manager.close();
  EXPECT_TRUE(has_stopped) << "close() has waited for it";
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  rival.join();
  worker.join();
  EXPECT_TRUE(stopped_at_grant);
}

TEST(Closing, ACallbackIsWaitedForBeforeTheLockIsGivenBack) {
  auto manager = open_quiet("closing-callback");
  auto rivals = open_quiet("closing-callback");
  auto held = manager.lock("a")->acquire();
  std::atomic<bool> has_returned = false;
  std::atomic<bool> was_free = true;
  held.on_state([&](HandleState, LossReason) {
    std::this_thread::sleep_for(200ms);
    was_free = rivals.lock("a")->try_acquire().has_value();
    has_returned = true;
  });
  manager.close();
  EXPECT_TRUE(has_returned);
  EXPECT_FALSE(was_free);
  EXPECT_TRUE(rivals.lock("a")->try_acquire());
}

TEST(Closing, WhatNobodyListensToDelaysNothing) {
  auto manager = open_quiet("closing-plain");
  std::vector<LockHandle> held;
  for (int i = 0; i < 100; ++i) held.push_back(manager.lock("n/" + std::to_string(i))->acquire());
  const auto start = std::chrono::steady_clock::now();
  manager.close();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s) << "far below release_timeout";
  for (const auto& handle : held) EXPECT_EQ(handle.loss_reason(), LossReason::closed);
  EXPECT_TRUE(open_quiet("closing-plain").lock("n/7")->try_acquire());
}

}  // namespace
}  // namespace dlock::tests
