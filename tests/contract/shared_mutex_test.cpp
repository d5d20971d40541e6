// SPDX-License-Identifier: Apache-2.0
//
// The std vocabulary of readers and writers over each store that has them.
#include <atomic>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SharedMutexContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    if (!HasFatalFailure() && !capabilities().shared_mode) GTEST_SKIP() << "it has no shared mode";
  }
};
DLOCK_CONTRACT(SharedMutexContract);

TEST_P(SharedMutexContract, WorksInSharedLockUniqueLockAndScopedLock) {
  auto manager = open();
  SharedMutex mutex(manager.lock("a"));
  auto other_thread = [&](auto work) { std::async(std::launch::async, work).get(); };
  {
    const std::shared_lock reading(mutex);
    EXPECT_EQ(mutex.held()->mode(), Mode::shared);
    other_thread([&] {
      EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock).owns_lock());
      const std::shared_lock also(mutex, std::try_to_lock);
      EXPECT_TRUE(also.owns_lock());
    });
  }
  {
    const std::scoped_lock writing(mutex);
    EXPECT_EQ(mutex.held()->mode(), Mode::exclusive);
    other_thread([&] {
      EXPECT_FALSE(std::shared_lock(mutex, std::try_to_lock).owns_lock());
      EXPECT_FALSE(std::shared_lock(mutex, 50ms).owns_lock());
      EXPECT_FALSE(mutex.try_lock_shared_until(std::chrono::steady_clock::now() + 20ms));
      EXPECT_FALSE(std::unique_lock(mutex, 50ms).owns_lock());
    });
  }
  EXPECT_EQ(mutex.held(), nullptr);
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedMutexContract, G15_ANestedReadersEndLeavesTheOuterOneAlone) {
  auto manager = open();
  SharedMutex mutex(manager.lock("a"));
  const std::shared_lock outer(mutex);
  { const std::shared_lock inner(mutex); }
  ASSERT_NE(mutex.held(), nullptr);
  EXPECT_EQ(mutex.held()->state(), HandleState::held);
  EXPECT_FALSE(open().lock("a")->try_acquire());
}

TEST_P(SharedMutexContract, AWriterThatReadsIsAReaderWhenItsWritingEnds) {
  auto manager = open();
  SharedMutex mutex(manager.lock("a"));
  mutex.lock();
  mutex.lock_shared();
  EXPECT_EQ(mutex.held()->mode(), Mode::exclusive);
  const auto token = mutex.held()->token();
  mutex.unlock();
  EXPECT_EQ(mutex.held()->mode(), Mode::shared);
  EXPECT_EQ(mutex.held()->token(), token);
  EXPECT_TRUE(open().lock("a")->try_acquire({.mode = Mode::shared}));
  EXPECT_FALSE(open().lock("a")->try_acquire());
  mutex.unlock_shared();
  EXPECT_TRUE(becomes_free("a"));

  mutex.lock();
  mutex.unlock_and_lock_shared();
  EXPECT_EQ(mutex.held()->mode(), Mode::shared);
  mutex.unlock_shared();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedMutexContract, WhoWouldWaitForItselfIsToldSo) {
  auto manager = open();
  SharedMutex mutex(manager.lock("a"));
  Mutex same(manager.lock("a"));
  const std::shared_lock reading(mutex);
  EXPECT_EQ(error_of([&] { mutex.lock(); }), errc::operation_not_permitted);
  EXPECT_EQ(error_of([&] { static_cast<void>(mutex.try_lock()); }), errc::operation_not_permitted);
  EXPECT_EQ(error_of([&] { same.lock(); }), errc::operation_not_permitted);
  EXPECT_EQ(error_of([&] { mutex.unlock(); }), errc::operation_not_permitted);
  EXPECT_EQ(error_of([&] { mutex.unlock_and_lock_shared(); }), errc::operation_not_permitted);
  EXPECT_EQ(mutex.held()->state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::contract
