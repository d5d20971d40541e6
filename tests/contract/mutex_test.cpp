// SPDX-License-Identifier: Apache-2.0
//
// The std vocabulary over each store.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class MutexContract : public Contract {};
DLOCK_CONTRACT(MutexContract);

TEST_P(MutexContract, SixteenThreadsCountWithoutLoss) {
  constexpr int kThreads = 16;
  constexpr int kRounds = 25;
  auto manager = open();
  long number = 0;  // nothing but the lock guards it
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Mutex mutex(manager.lock("counter"));
      for (int i = 0; i < kRounds; ++i) {
        const std::scoped_lock guard(mutex);
        const long read = number;
        std::this_thread::yield();
        number = read + 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, kThreads * kRounds);
}

TEST_P(MutexContract, TwoManagersCountWithoutLoss) {
  constexpr int kRounds = 30;
  // Atomic, since managers meet in the store only: ThreadSanitizer does not see that they do.
  std::atomic<long> number = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto manager = open();
      Mutex mutex(manager.lock("counter"));
      for (int i = 0; i < kRounds; ++i) {
        const std::scoped_lock guard(mutex);
        const long read = number.load();
        std::this_thread::yield();
        number.store(read + 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 4 * kRounds);
}

TEST_P(MutexContract, ReentersOnItsThreadAndExcludesOthers) {
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  Mutex same(manager.lock("a"));
  mutex.lock();
  mutex.lock();
  EXPECT_TRUE(same.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  same.unlock();
  mutex.unlock();
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  EXPECT_NE(mutex.held(), nullptr);
  mutex.unlock();
  EXPECT_EQ(mutex.held(), nullptr);
  std::thread([&] {
    EXPECT_TRUE(mutex.try_lock_for(30s));
    mutex.unlock();
  }).join();
}

TEST_P(MutexContract, UnlockByAThreadThatDoesNotOwnItIsABug) {
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  EXPECT_EQ(error_of([&] { mutex.unlock(); }), errc::operation_not_permitted);
  const std::scoped_lock guard(mutex);
  std::thread([&] {
    EXPECT_EQ(error_of([&] { mutex.unlock(); }), errc::operation_not_permitted);
  }).join();
}

TEST_P(MutexContract, ALostMutexIsNotReentered) {
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  mutex.lock();
  harness().take_away(observer(), url(), "a");
  ASSERT_TRUE(eventually(patience(), [&] { return mutex.held()->state() == HandleState::lost; }));
  EXPECT_EQ(error_of([&] { mutex.lock(); }), errc::lock_lost);
  EXPECT_EQ(error_of([&] { mutex.try_lock(); }), errc::lock_lost);
  EXPECT_NO_THROW(mutex.unlock()) << "unlock never throws for what a store does";
  EXPECT_TRUE(mutex.try_lock_for(30s)) << "and then it may be taken anew";
  mutex.unlock();
}

TEST_P(MutexContract, ALostMutexIsToldToTheManagersOnLossOnce) {
  std::promise<Loss> told;
  std::atomic<int> times = 0;
  auto options = open_options();
  options.on_loss = [&](const Loss& loss) {
    if (times++ == 0) told.set_value(loss);
  };
  auto manager = LockManager::open(url(), std::move(options));
  Mutex mutex(manager.lock("a"));
  mutex.lock();
  const auto token = mutex.held()->token();
  harness().take_away(observer(), url(), "a");
  auto future = told.get_future();
  ASSERT_EQ(future.wait_for(60s), std::future_status::ready);
  const auto loss = future.get();
  EXPECT_EQ(loss.name, "a");
  EXPECT_EQ(loss.store, "default");
  EXPECT_EQ(loss.token, token);
  EXPECT_TRUE(loss.through_mutex);
  EXPECT_NE(loss.reason, LossReason::none);
  error_code ec;
  mutex.unlock(ec);
  EXPECT_EQ(ec, errc::lock_lost);
  manager.close();
  EXPECT_EQ(times, 1);
}

TEST_P(MutexContract, SynchronizedThrowsForALossThatItsWorkWasNotToldOf) {
  auto manager = open();
  Mutex same(manager.lock("section"));
  const auto lose = [&] {
    harness().take_away(observer(), url(), "section");
    ASSERT_TRUE(eventually(patience(), [&] { return same.held()->state() == HandleState::lost; }));
  };
  EXPECT_EQ(error_of([&] { synchronized(manager, "section", lose); }), errc::lock_lost);
  const bool stopped = synchronized(manager, "section", [&](const std::stop_token& lost) {
    lose();
    return eventually(patience(), [&] { return lost.stop_requested(); });
  });
  EXPECT_TRUE(stopped) << "work that was told has the last word";
}

// In opposite orders, as std::lock allows. Its two sides may back off from each other for a while
// on a store where each step is a round trip, so a few turns are enough.
TEST_P(MutexContract, TwoMutexesInOneScopedLock) {
  constexpr int kRounds = 2;
  auto manager = open();
  int turns = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Mutex first(manager.lock(t == 0 ? "a" : "b"));
      Mutex second(manager.lock(t == 0 ? "b" : "a"));
      for (int i = 0; i < kRounds; ++i) {
        const std::scoped_lock both(first, second);
        ++turns;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(turns, 2 * kRounds);
}

TEST_P(MutexContract, WorksWithAConditionVariable) {
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  std::condition_variable_any changed;
  bool ready = false;
  std::thread other([&] {
    Mutex same(manager.lock("a"));
    const std::unique_lock guard(same);
    ready = true;
    changed.notify_all();
  });
  {
    std::unique_lock guard(mutex);
    EXPECT_TRUE(changed.wait_for(guard, 60s, [&] { return ready; }));
  }
  other.join();
}

TEST_P(MutexContract, NestedSynchronizedReenters) {
  auto manager = open();
  const int result = synchronized(manager, "section", [&] {
    EXPECT_FALSE(observer().lock("section")->try_acquire());
    return synchronized(manager, "section", [] { return 7; });
  });
  EXPECT_EQ(result, 7);
  EXPECT_TRUE(becomes_free("section"));
}

TEST_P(MutexContract, SynchronizedUnlocksWhenItsWorkThrows) {
  auto manager = open();
  EXPECT_THROW(synchronized(manager, "section", [] { throw std::runtime_error("work"); }),
               std::runtime_error);
  EXPECT_TRUE(becomes_free("section"));
}

}  // namespace
}  // namespace dlock::contract
