// SPDX-License-Identifier: Apache-2.0
//
// How a MultiLock is taken: in which order, by when, and what becomes of what was obtained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/mutex.hpp"
#include "dlock/synchronized.hpp"
#include "dlock/testing/fake_lock.hpp"
#include "testkit/await.hpp"
#include "tests/unit/manager/step_lock.hpp"
#include "tests/unit/testing/support.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeLock;
using testkit::eventually;
using testkit::patience;

std::shared_ptr<FakeLock> fake(const std::string& name, const std::string& store = "fake") {
  return std::make_shared<FakeLock>(name, store);
}

/// Three locks that are granted step by step, and one acquire of them all.
class MultiLockSteps : public ::testing::Test {
 protected:
  // A lock keeps who asked for it until it has answered.
  ~MultiLockSteps() override {
    for (const auto& step : steps) step->refuse(errc::cancelled);
  }

  void start(AcquireOptions options = {}) {
    options.diagnostics = &diagnostics;
    cancel = all.start_acquire(options, [this](error_code ec, LockHandle handle) {
      ++told;
      result = ec;
      held = std::move(handle);
    });
  }

  const std::shared_ptr<StepLock> a = std::make_shared<StepLock>("a");
  const std::shared_ptr<StepLock> b = std::make_shared<StepLock>("b");
  const std::shared_ptr<StepLock> c = std::make_shared<StepLock>("c");
  const std::array<std::shared_ptr<StepLock>, 3> steps{a, b, c};
  MultiLock all{{c, a, b}};
  detail::Canceller cancel;
  int told = 0;
  error_code result;
  LockHandle held;
  Diagnostics diagnostics;
};

TEST(MultiLock, RefusesWhatIsNoSetOfLocks) {
  const auto refused = [](std::vector<std::shared_ptr<DistributedLock>> locks) {
    const auto error = error_of([&] { MultiLock all(std::move(locks)); });
    return error && error->code() == errc::invalid_argument ? error->server_text() : "accepted";
  };
  const auto a = fake("a");
  const auto b = fake("b");
  EXPECT_EQ(refused({}), "there is no lock to take");
  EXPECT_EQ(refused({a, nullptr}), "one of the locks is null");
  EXPECT_EQ(refused({a, b, a}), "it is there twice");
  EXPECT_EQ(refused({a, std::make_shared<MultiLock>(
                            std::vector<std::shared_ptr<DistributedLock>>{b, a})}),
            "it is there twice")
      << "in a MultiLock among them";
  EXPECT_EQ(refused({a, b}), "accepted");
  EXPECT_EQ(refused({a, fake("a")}), "accepted") << "of somebody else's, by that name";
}

TEST(MultiLock, TwoLocksOfOneManagerAndNameAreTheSame) {
  const testing::Store store;
  auto locks = store.open();
  auto others = store.open();
  EXPECT_EQ(error_of([&] { locks.lock_all({"a", "b", "a"}); })->code(), errc::invalid_argument);
  EXPECT_EQ(error_of([&] { locks.lock_all({}); })->code(), errc::invalid_argument);
  EXPECT_EQ(error_of([&] { locks.lock_all({"a", "/"}); })->code(), errc::invalid_name);
  EXPECT_EQ(error_of([&] { locks.lock_all({"b", "a", "b"}); })->lock(), "b") << "it is named";
  EXPECT_FALSE(error_of([&] { MultiLock({locks.lock("a"), others.lock("a")}); }));
}

TEST(MultiLock, IsSortedByNameThenByStore) {
  const auto in_zk = fake("b", "zk");
  const auto in_redis = fake("b", "redis");
  const auto first = fake("a", "zk");
  const auto last = fake("c", "redis");
  const MultiLock one({in_zk, last, in_redis, first});
  const MultiLock other({last, first, in_redis, in_zk});
  EXPECT_THAT(one.locks(), ElementsAre(first, in_redis, in_zk, last));
  EXPECT_EQ(other.locks(), one.locks());
  EXPECT_EQ(one.name(), "a // b // b // c");
  EXPECT_EQ(one.store(), "zk, redis");
}

TEST(MultiLock, AMultiLockAmongThemCountsAsTheLocksInIt) {
  const auto a = fake("a");
  const auto b = fake("b");
  const auto c = fake("c");
  const auto inner =
      std::make_shared<MultiLock>(std::vector<std::shared_ptr<DistributedLock>>{c, a});
  EXPECT_THAT(MultiLock({inner, b}).locks(), ElementsAre(a, b, c));
}

TEST(MultiLock, OfOneLockIsThatLock) {
  const auto a = fake("a", "main");
  MultiLock alone({a});
  const auto held = alone.acquire();
  EXPECT_EQ(held.name(), "a");
  EXPECT_EQ(held.token(), 1U);
  EXPECT_EQ(&alone.context(), &a->context());
}

TEST_F(MultiLockSteps, AreAskedOneAfterTheOtherInOrder) {
  start();
  EXPECT_TRUE(a->is_pending());
  EXPECT_EQ(b->asked(), 0);
  a->grant();
  EXPECT_TRUE(b->is_pending());
  EXPECT_EQ(c->asked(), 0);
  b->grant();
  EXPECT_EQ(told, 0);
  c->grant();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(result) << result.message();
  EXPECT_EQ(held.name(), "a // b // c");
  EXPECT_EQ(held.store(), "steps");
}

bool passes(std::chrono::milliseconds time) {
  const auto end = testkit::Clock::now() + time;
  return eventually(patience(), [end] { return testkit::Clock::now() > end; });
}

TEST_F(MultiLockSteps, OneDeadlineCountsForAll) {
  start({.wait = 10min});
  EXPECT_LE(a->wait(), 10min);
  EXPECT_GT(a->wait(), 9min);
  const auto before = *a->wait();
  ASSERT_TRUE(passes(20ms));
  a->grant();
  EXPECT_LE(b->wait(), before - 19ms);
  const auto then = *b->wait();
  ASSERT_TRUE(passes(20ms));
  b->grant();
  EXPECT_LE(c->wait(), then - 19ms);
}

TEST_F(MultiLockSteps, ALockIsNotAskedForAfterTheDeadline) {
  start({.wait = kFirstAnswer + 1ms});
  ASSERT_TRUE(passes(kFirstAnswer + 2ms));
  const auto first = a->grant();
  EXPECT_EQ(b->asked(), 0);
  EXPECT_EQ(result, errc::unavailable) << "the store of 'b' has not said that it is held";
  EXPECT_EQ(diagnostics.lock, "b");
  EXPECT_TRUE(first.is_released());
}

TEST_F(MultiLockSteps, AfterAShortWaitALockIsAskedForItsFirstAnswer) {
  start({.wait = 30ms});
  ASSERT_TRUE(passes(31ms));
  const auto first = a->grant();
  EXPECT_EQ(b->asked(), 1);
  EXPECT_EQ(b->wait(), 1ms);
  b->refuse(errc::timed_out, std::string(kHeldByAnother));
  EXPECT_EQ(result, errc::timed_out);
  EXPECT_EQ(diagnostics.lock, "b");
  EXPECT_EQ(diagnostics.store, "steps");
  EXPECT_TRUE(first.is_released());
}

TEST_F(MultiLockSteps, AWaitOfZeroAsksEachOnce) {
  start({.wait = 0ms});
  EXPECT_EQ(a->wait(), 0ms);
  a->grant();
  EXPECT_EQ(b->wait(), 0ms);
  b->grant();
  EXPECT_EQ(c->wait(), 0ms);
}

TEST_F(MultiLockSteps, AWaitForEverIsOneForEachOfThem) {
  start({.wait = kWaitForever});
  EXPECT_EQ(a->wait(), kWaitForever);
  a->grant();
  EXPECT_EQ(b->wait(), kWaitForever);
}

TEST_F(MultiLockSteps, TheShortestUsualWaitCountsForAll) {
  start();
  EXPECT_EQ(a->wait(), std::nullopt) << "none of them has one";
  cancel();
  b->usual_wait = 10min;
  c->usual_wait = 20min;
  EXPECT_EQ(all.default_wait(), 10min);
  start();
  EXPECT_LE(a->wait(), 10min);
  EXPECT_GT(a->wait(), 9min);
  cancel();
  b->usual_wait = 0ms;
  start();
  EXPECT_EQ(a->wait(), 0ms);
}

TEST_F(MultiLockSteps, WhatWasObtainedIsGivenBackWhenALaterOneFails) {
  start();
  const auto first = a->grant();
  const auto second = b->grant();
  c->refuse(errc::unavailable, "no route to host");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(result, errc::unavailable);
  EXPECT_FALSE(held);
  EXPECT_EQ(diagnostics.lock, "c");
  EXPECT_EQ(diagnostics.store, "steps");
  EXPECT_EQ(diagnostics.server_text, "no route to host");
  EXPECT_TRUE(first.is_released());
  EXPECT_TRUE(second.is_released());
}

TEST_F(MultiLockSteps, NothingIsAskedForAfterAFailure) {
  start();
  a->refuse(errc::timed_out, std::string(kHeldByAnother));
  EXPECT_EQ(result, errc::timed_out);
  EXPECT_EQ(diagnostics.lock, "a");
  EXPECT_EQ(b->asked(), 0);
}

TEST_F(MultiLockSteps, ACancelEndsItWhereverItWaits) {
  for (std::size_t obtained = 0; obtained < steps.size(); ++obtained) {
    told = 0;
    start();
    std::vector<testing::FakeHandle> got;
    for (std::size_t i = 0; i < obtained; ++i) got.push_back(steps[i]->grant());
    const int asked = obtained + 1 < steps.size() ? steps[obtained + 1]->asked() : 0;
    cancel();
    EXPECT_EQ(told, 1) << obtained;
    EXPECT_EQ(result, errc::cancelled);
    EXPECT_EQ(diagnostics.lock, steps[obtained]->name());
    for (const auto& part : got) EXPECT_TRUE(part.is_released());
    if (obtained + 1 < steps.size()) {
      EXPECT_EQ(steps[obtained + 1]->asked(), asked) << "it was cancelled";
    }
    cancel();
    EXPECT_EQ(told, 1) << "it is over";
  }
}

TEST_F(MultiLockSteps, ACancelThatComesTooLateForOneStopsBeforeTheNext) {
  a->ignores_cancel = true;
  start();
  cancel();
  EXPECT_EQ(a->cancels, 1);
  EXPECT_EQ(told, 0);
  const auto first = a->grant();
  EXPECT_EQ(result, errc::cancelled);
  EXPECT_EQ(diagnostics.lock, "b");
  EXPECT_EQ(b->asked(), 0);
  EXPECT_TRUE(first.is_released());
}

TEST_F(MultiLockSteps, ACancelWhileOneIsBeingAskedReachesIt) {
  b->on_start = [this] { cancel(); };
  start();
  const auto first = a->grant();
  EXPECT_EQ(b->cancels, 1);
  EXPECT_EQ(result, errc::cancelled);
  EXPECT_TRUE(first.is_released());
}

TEST_F(MultiLockSteps, OneThatIsLostWhileOthersAreWaitedForEndsIt) {
  start({.wait = 10min});
  const auto first = a->grant();
  auto second = b->grant();
  second.lose(LossReason::evicted);
  EXPECT_EQ(c->cancels, 1);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(result, errc::lock_lost);
  EXPECT_EQ(diagnostics.lock, "b");
  EXPECT_EQ(diagnostics.store, "steps");
  EXPECT_EQ(diagnostics.server_text, "evicted");
  EXPECT_TRUE(first.is_released());
  EXPECT_TRUE(second.is_released());
}

TEST_F(MultiLockSteps, ItIsNeverGrantedWithALostPart) {
  for (const std::size_t lost : {0U, 1U}) {
    told = 0;
    c->ignores_cancel = true;
    start();
    std::vector<testing::FakeHandle> got{a->grant(), b->grant()};
    got[lost].lose(LossReason::expired);
    EXPECT_EQ(told, 0);
    got.push_back(c->grant());
    EXPECT_EQ(told, 1);
    EXPECT_EQ(result, errc::lock_lost);
    EXPECT_FALSE(held);
    EXPECT_EQ(diagnostics.lock, steps[lost]->name());
    for (const auto& part : got) EXPECT_TRUE(part.is_released());
  }
}

TEST_F(MultiLockSteps, OneThatItsManagerTookBackEndsItAsClosed) {
  start();
  auto first = a->grant();
  first.lose(LossReason::closed);
  EXPECT_EQ(result, errc::closed);
  EXPECT_EQ(diagnostics.lock, "a");
}

TEST_F(MultiLockSteps, OneThatIsSuspectIsHeld) {
  start();
  a->grant().become_suspect();
  b->grant();
  c->grant();
  ASSERT_TRUE(held);
  EXPECT_EQ(held.state(), HandleState::suspect);
  EXPECT_NO_THROW(held.check());
  Diary diary(held);
  EXPECT_THAT(diary.told(), ElementsAre(std::pair(HandleState::suspect, LossReason::none)));
}

TEST_F(MultiLockSteps, OneThatThrowsEndsIt) {
  b->on_start = [] { throw std::runtime_error("a lock"); };
  start();
  const auto first = a->grant();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(result, errc::protocol);
  EXPECT_TRUE(first.is_released());
}

TEST(MultiLock, WithoutMemoryThrowsInTheCallersThreadAndReleasesWhatItGot) {
  const auto a = fake("a");
  const auto b = std::make_shared<StepLock>("b");
  b->on_start = [] { throw std::bad_alloc(); };
  MultiLock both({a, b});
  EXPECT_THROW(std::ignore = both.acquire(), std::bad_alloc);
  EXPECT_TRUE(a->last_grant().is_released());
  error_code ec;
  EXPECT_FALSE(both.acquire({}, {}, ec));
  EXPECT_EQ(ec, errc::unavailable);
  EXPECT_TRUE(a->last_grant().is_released());
}

TEST(MultiLock, ATryGivesBackWhatItGot) {
  const auto a = fake("a");
  const auto b = fake("b");
  b->refuse(errc::timed_out);
  MultiLock both({a, b});
  EXPECT_FALSE(both.try_acquire());
  EXPECT_TRUE(a->last_grant().is_released());
  EXPECT_EQ(a->acquires()[0].wait, 0ms);
  EXPECT_TRUE(both.try_acquire());
}

TEST(MultiLock, TheErrorThatIsThrownNamesTheLock) {
  const auto b = fake("b", "redis");
  b->refuse(errc::access_denied, "NOPERM");
  MultiLock both({b, fake("a", "zk")});
  const auto error = error_of([&] { std::ignore = both.acquire({.lease = 7s}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::access_denied);
  EXPECT_EQ(error->lock(), "b");
  EXPECT_EQ(error->store(), "redis");
  EXPECT_EQ(error->server_text(), "NOPERM");
  EXPECT_EQ(b->acquires()[0].lease, 7s) << "asked of each";
}

TEST(MultiLock, ABlockingAcquireEndsByItsStopToken) {
  const auto a = fake("a");
  const auto b = std::make_shared<StepLock>("b");
  MultiLock both({a, b});
  std::stop_source stop;
  auto ended = std::async(std::launch::async, [&] {
    error_code ec;
    const auto held = both.acquire({}, stop.get_token(), ec);
    return ec;
  });
  ASSERT_TRUE(eventually(patience(), [&] { return b->is_pending(); }));
  stop.request_stop();
  EXPECT_EQ(ended.get(), errc::cancelled);
  EXPECT_TRUE(a->last_grant().is_released());
}

TEST(MultiLock, ACancellationSlotEndsIt) {
  const auto a = fake("a");
  const auto b = std::make_shared<StepLock>("b");
  MultiLock both({a, b});
  boost::asio::io_context io;
  boost::asio::cancellation_signal signal;
  error_code ended;
  both.async_acquire(boost::asio::bind_cancellation_slot(
      signal.slot(), boost::asio::bind_executor(io, [&](error_code ec, const LockHandle& held) {
        EXPECT_FALSE(held);
        ended = ec;
      })));
  EXPECT_TRUE(b->is_pending());
  signal.emit(boost::asio::cancellation_type::terminal);
  io.run();
  EXPECT_EQ(ended, errc::cancelled);
  EXPECT_TRUE(a->last_grant().is_released());
}

TEST(MultiLock, HasItsHandlersAndItsReleaseOnAnExecutor) {
  const auto a = fake("a");
  const auto b = fake("b");
  MultiLock both({a, b});
  boost::asio::io_context io;
  bool is_released = false;
  both.async_acquire(boost::asio::bind_executor(io, [&](error_code, LockHandle held) {
    async_release(held, boost::asio::bind_executor(io, [&](error_code ec) {
                    EXPECT_FALSE(ec) << ec.message();
                    is_released = true;
                  }));
  }));
  EXPECT_TRUE(b->last_grant().release_result() == std::nullopt) << "not inside the call";
  io.run();
  EXPECT_TRUE(is_released);
  EXPECT_TRUE(a->last_grant().is_released());
  EXPECT_TRUE(b->last_grant().is_released());
}

TEST(MultiLock, AMutexCountsReentryPerObjectWhereLocksHaveNoManagerInCommon) {
  const auto a = fake("a");
  const auto b = fake("b");
  const auto both =
      std::make_shared<MultiLock>(std::vector<std::shared_ptr<DistributedLock>>{a, b});
  Mutex mutex(both);
  {
    const std::scoped_lock guard(mutex);
    Mutex same(both);
    const std::scoped_lock again(same);
    EXPECT_EQ(a->grants().size(), 1U);
    EXPECT_TRUE(a->last_grant().is_of_mutex());
    EXPECT_TRUE(b->last_grant().is_of_mutex());
    std::thread([&] {
      b->refuse(errc::timed_out);
      EXPECT_FALSE(mutex.try_lock()) << "another thread";
    }).join();
  }
  EXPECT_TRUE(b->last_grant().is_released());
}

TEST(MultiLock, MutexesOfTheSameNamesOfOneManagerReenterEachOther) {
  const testing::Store store;
  auto locks = store.open();
  Mutex mutex(locks.lock_all({"a", "b"}));
  Mutex same(locks.lock_all({"b", "a"}));
  Mutex part(locks.lock("a"));
  const std::scoped_lock guard(mutex);
  EXPECT_TRUE(same.try_lock());
  EXPECT_EQ(same.held()->token(), std::nullopt);
  EXPECT_FALSE(part.try_lock()) << "a part is another lock";
  same.unlock();
  EXPECT_EQ(store.count(testing::Event::Kind::granted, "a"), 1U);
}

TEST(MultiLock, WorkIsSynchronizedUnderAllOfThem) {
  testing::Store store;
  auto locks = store.open();
  const auto both = locks.lock_all({"a", "b"});
  EXPECT_EQ(synchronized(both,
                         [&](const LockHandle& held) {
                           EXPECT_TRUE(store.held("a"));
                           EXPECT_TRUE(store.held("b"));
                           return held.sequencers().size();
                         }),
            2U);
  EXPECT_TRUE(store.wait_for(testing::Event::Kind::released, "b"));
  const auto error = error_of([&] { synchronized(both, [&] { store.lose("b"); }); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::lock_lost);
}

}  // namespace
}  // namespace dlock::tests
