// SPDX-License-Identifier: Apache-2.0
//
// Locks that stay with a manager between their holders, beside another manager of the same store.
// Apart: its threads are for ThreadSanitizer to look at.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "dlock/distributed_lock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"
#include "dlock/mutex.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

class CacheTest : public ::testing::Test {
 protected:
  LockManager open(const std::string& options = "cache=1h") {
    const auto url = "memory://" + store_ + (options.empty() ? "" : "?" + options);
    return LockManager::open(url, {.backends = {&memory::backend()}});
  }
  bool is_held() { return observer_.status("a").held; }

  const std::string store_ =
      std::string("cache-") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  LockManager observer_ = open("");
};

TEST_F(CacheTest, AReleasedLockStaysWithItsManagerAndKeepsItsToken) {
  auto manager = open();
  const auto lock = manager.lock("a");
  auto held = lock->acquire();
  const auto token = held.token();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(is_held());
  held = manager.lock("a")->acquire();
  EXPECT_EQ(held.token(), token);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(lock->try_acquire());
}

TEST_F(CacheTest, WhoeverAsksGetsItAtOnceIfNobodyUsesIt) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  auto other = open();
  auto held = other.lock("a")->acquire({.wait = 30s});
  EXPECT_EQ(held.token(), 2U);
  auto waiter = std::async(std::launch::async,
                           [&] { return manager.lock("a")->acquire({.wait = 30s}).token(); });
  ASSERT_TRUE(eventually(patience(), [&] { return !observer_.status("a").waiting.empty(); }));
  EXPECT_FALSE(held.release());
  EXPECT_EQ(waiter.get(), 3U);
}

TEST_F(CacheTest, ATryOfAnotherIsAnsweredBusyAndMakesItFree) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  EXPECT_FALSE(observer_.lock("a")->try_acquire());
  EXPECT_TRUE(
      eventually(patience(), [&] { return observer_.lock("a")->try_acquire().has_value(); }));
}

TEST_F(CacheTest, WhoWantsALeaseOfHisOwnCountsAsAnother) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  auto held = manager.lock("a")->acquire({.wait = 30s, .lease = 1h});
  EXPECT_EQ(held.token(), 2U);
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(is_held());
}

TEST_F(CacheTest, ARevocableAcquireHasItsOwnClaimAndIsAsked) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  auto held = manager.lock("a")->acquire({.wait = 30s, .revocable = true});
  EXPECT_EQ(held.token(), 2U);
  std::promise<void> asked;
  held.on_revoke([&asked](const Revocation&) { asked.set_value(); });
  EXPECT_EQ(observer_.ask("a").heard, true);
  EXPECT_EQ(asked.get_future().wait_until(patience()), std::future_status::ready);
  EXPECT_FALSE(held.release());
}

TEST_F(CacheTest, AnAcquireWithAHeadStartHasItsOwnClaim) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  auto held = manager.lock("a")->acquire({.wait = 30s, .head_start = 1s});
  EXPECT_EQ(held.token(), 2U);
  EXPECT_FALSE(held.release());
}

TEST_F(CacheTest, BrokenWhileNobodyUsesItIsToldToNobody) {
  std::atomic<int> losses = 0;
  OpenOptions options{.backends = {&memory::backend()}};
  options.on_loss = [&losses](const Loss& loss) {
    if (loss.name == "a") ++losses;
  };
  auto manager = LockManager::open("memory://" + store_ + "?cache=1h", options);
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  // Used all the time, and broken after the other one: its holder is told when both are known.
  auto used = manager.lock("b")->acquire();
  observer_.evict("a", 1, {.at_once = true});
  observer_.evict("b", used.token().value(), {.at_once = true});
  ASSERT_TRUE(eventually(patience(), [&] { return used.stop_token().stop_requested(); }));
  EXPECT_EQ(manager.lock("a")->acquire().token(), 2U);
  manager.close();
  EXPECT_EQ(losses, 0);
}

TEST_F(CacheTest, BrokenWhileItIsUsedIsToldAsEver) {
  std::atomic<int> losses = 0;
  OpenOptions options{.backends = {&memory::backend()}};
  options.on_loss = [&losses](const Loss& loss) {
    if (loss.reason == LossReason::broken) ++losses;
  };
  auto manager = LockManager::open("memory://" + store_ + "?cache=1h", options);
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  auto held = manager.lock("a")->acquire();
  observer_.evict("a", 1, {.at_once = true});
  ASSERT_TRUE(eventually(patience(), [&] { return held.stop_token().stop_requested(); }));
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(eventually(patience(), [&] { return losses == 1; }));
}

TEST_F(CacheTest, TheEndGivesItBack) {
  auto manager = open();
  EXPECT_FALSE(manager.lock("a")->acquire().release());
  manager.close();
  EXPECT_FALSE(is_held());
  error_code ec;
  EXPECT_FALSE(manager.lock("a")->acquire({}, {}, ec));
  EXPECT_EQ(ec, errc::closed);
}

TEST_F(CacheTest, TheEndTellsWhoWaitsInside) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  auto waiter = std::async(std::launch::async, [&] {
    error_code ec;
    std::ignore = manager.lock("a")->acquire({}, {}, ec);
    return ec;
  });
  // Nothing shows that he waits: if he comes later, he is told the same.
  manager.close();
  EXPECT_EQ(waiter.get(), errc::closed);
}

TEST_F(CacheTest, AMutexAndSeveralLocksUseIt) {
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  for (int i = 0; i < 3; ++i) {
    const std::scoped_lock twice(mutex);
    EXPECT_EQ(mutex.held()->token(), 1U);
  }
  for (int i = 0; i < 3; ++i) {
    auto both = manager.lock_all({"a", "b"})->acquire();
    EXPECT_EQ(both.sequencers().front().token(), 1U);
    EXPECT_FALSE(both.release());
  }
}

/// What two managers' threads do under one lock: one at a time, and everybody has his turn.
void crowd(LockManager& one, LockManager& other) {
  constexpr int kRounds = 300;
  int guarded = 0;  // by the lock alone
  std::atomic<int> inside = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (auto* manager : {&one, &other}) {
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, manager] {
        const auto lock = manager->lock("a");
        for (int round = 0; round < kRounds; ++round) {
          auto held = lock->acquire();
          if (++inside != 1) ++wrong;
          ++guarded;
          --inside;
          if (held.release()) ++wrong;
        }
      });
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(guarded, 6 * kRounds);
  EXPECT_EQ(wrong, 0);
}

TEST_F(CacheTest, ManyThreadsOfTwoManagersExcludeEachOther) {
  auto one = open();
  auto other = open();
  crowd(one, other);
}

TEST_F(CacheTest, SoTheyDoInCohorts) {
  auto one = open("cache=1ms&cohort=5");
  auto other = open("cohort=3");
  crowd(one, other);
}

TEST_F(CacheTest, ALossMeetsThoseWhoTakeIt) {
  OpenOptions options{.backends = {&memory::backend()}};
  options.log_losses = false;
  auto manager = LockManager::open("memory://" + store_ + "?cache=1ms&cohort=2", options);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto lock = manager.lock("a");
      while (!is_over) {
        auto held = lock->acquire();
        std::ignore = held.release();  // held, or lost meanwhile
      }
    });
  }
  int broken = 0;
  const auto enough = [&] {
    const auto status = observer_.status("a");
    try {
      if (status.token) observer_.evict("a", *status.token, {.at_once = true});
      if (status.token) ++broken;
    } catch (const LockError&) {
      // Somebody else's by now.
    }
    return broken > 100;
  };
  EXPECT_TRUE(eventually(patience(), enough));
  is_over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually(patience(), [&] { return !is_held(); }));
}

}  // namespace
}  // namespace dlock::tests
