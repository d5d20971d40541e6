// SPDX-License-Identifier: Apache-2.0
//
// Handles and locks without a store; and what a lock of a user's own brings with it, who has
// written no more than its name and how it acquires.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/mutex.hpp"
#include "dlock/testing/fake_handle.hpp"
#include "dlock/testing/fake_lock.hpp"
#include "dlock/testing/store.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeHandle;
using testing::FakeLock;
using ::testing::IsEmpty;
using ::testing::Pair;
using testkit::eventually;
using testkit::patience;
using Tellings = std::vector<std::pair<HandleState, LossReason>>;

StateCallback into(Tellings& told) {
  return [&told](HandleState state, LossReason reason) { told.emplace_back(state, reason); };
}

TEST(FakeHandle, SaysWhatItWasGiven) {
  FakeHandle grant({.name = "orders/42", .token = 7, .store = "main"});
  const auto held = grant.handle();
  EXPECT_TRUE(held);
  EXPECT_EQ(held.name(), "orders/42");
  EXPECT_EQ(held.store(), "main");
  EXPECT_EQ(held.token(), 7U);
  EXPECT_EQ(held.sequencer()->name(), "orders/42");
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(held.remaining(), std::nullopt);
  grant.set_remaining(3s);
  EXPECT_EQ(held.remaining(), 3s);
  EXPECT_NO_THROW(held.check());
  EXPECT_THROW(grant.handle(), std::logic_error);
}

TEST(FakeHandle, TellsInTheCommand) {
  FakeHandle grant;
  auto held = grant.handle();
  Tellings told;
  held.on_state(into(told));
  const auto stop = held.stop_token();
  bool stop_was_first = false;
  const std::stop_callback stopped(stop, [&] { stop_was_first = told.size() == 2; });
  grant.become_held();
  EXPECT_THAT(told, IsEmpty()) << "it is held";
  grant.become_suspect();
  grant.become_suspect();
  EXPECT_EQ(held.state(), HandleState::suspect);
  EXPECT_NO_THROW(held.check());
  grant.become_held();
  EXPECT_FALSE(stop.stop_requested());
  grant.lose(LossReason::failover);
  EXPECT_TRUE(stop_was_first);
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::failover);
  EXPECT_EQ(held.remaining(), 0ns);
  EXPECT_THROW(held.check(), LockError);
  grant.become_held();
  grant.lose();
  EXPECT_THAT(told, ElementsAre(Pair(HandleState::suspect, LossReason::none),
                                Pair(HandleState::held, LossReason::none),
                                Pair(HandleState::lost, LossReason::failover)));
  Tellings late;
  held.on_state(into(late));
  EXPECT_THAT(late, ElementsAre(Pair(HandleState::lost, LossReason::failover)));
}

TEST(FakeHandle, SaysWhatTheReleaseWasTold) {
  FakeHandle good;
  EXPECT_FALSE(good.is_released());
  auto held = good.handle();
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(held);
  EXPECT_EQ(good.release_result(), error_code());

  FakeHandle refused;
  refused.answer_release(make_error_code(errc::unavailable));
  held = refused.handle();
  EXPECT_EQ(held.release(), errc::unavailable);

  FakeHandle lost;
  held = lost.handle();
  lost.lose();
  EXPECT_FALSE(lost.is_released());
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(lost.release_result(), make_error_code(errc::lock_lost));

  FakeHandle dropped;
  held = dropped.handle();
  held = LockHandle();
  EXPECT_TRUE(dropped.is_released());
  Tellings told;
  dropped.lose();
  EXPECT_EQ(dropped.release_result(), error_code());
}

TEST(FakeHandle, AReleaseWaitsForTheCallbackThatRuns) {
  FakeHandle grant;
  auto held = grant.handle();
  std::promise<void> begun;
  std::promise<void> end;
  bool is_over = false;
  held.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
    is_over = true;
  });
  std::thread commands([&] { grant.lose(); });
  begun.get_future().wait();
  boost::asio::thread_pool pool(1);
  auto released = async_release(held, boost::asio::bind_executor(pool, boost::asio::use_future));
  EXPECT_EQ(grant.release_result(), make_error_code(errc::lock_lost));
  EXPECT_EQ(released.wait_for(0s), std::future_status::timeout);
  end.set_value();
  EXPECT_THROW(released.get(), boost::system::system_error);
  EXPECT_TRUE(is_over);
  commands.join();
}

TEST(FakeHandle, ACallbackMayReleaseAndCommand) {
  FakeHandle grant;
  auto held = grant.handle();
  Tellings told;
  error_code result;
  held.on_state([&](HandleState state, LossReason) {
    if (state == HandleState::suspect) grant.lose(LossReason::taken);
  });
  held.on_state(into(told));
  held.on_state([&](HandleState state, LossReason) {
    if (state == HandleState::lost) result = held.release();
  });
  grant.become_suspect();
  EXPECT_THAT(told, ElementsAre(Pair(HandleState::suspect, LossReason::none),
                                Pair(HandleState::lost, LossReason::taken)))
      << "the later change after the earlier one, to everybody";
  EXPECT_EQ(result, errc::lock_lost);
  EXPECT_TRUE(grant.is_released());
}

TEST(FakeLock, GrantsWithRisingTokens) {
  FakeLock lock("a", "main");
  const auto first = lock.acquire({.wait = 5s});
  const auto second = lock.try_acquire();
  ASSERT_TRUE(second);
  EXPECT_EQ(first.token(), 1U);
  EXPECT_EQ(second->token(), 2U);
  EXPECT_EQ(second->name(), "a");
  EXPECT_EQ(second->store(), "main");
  lock.next_token(std::nullopt);
  EXPECT_EQ(lock.acquire().token(), std::nullopt);
  lock.next_token(40);
  EXPECT_EQ(lock.acquire().token(), 40U);
  EXPECT_EQ(lock.acquire().token(), 41U);
  EXPECT_TRUE(lock.last_grant().is_released());
  lock.grants().front().lose();
  EXPECT_EQ(first.state(), HandleState::lost);
  ASSERT_EQ(lock.acquires().size(), 5U);
  EXPECT_EQ(lock.acquires()[0].wait, 5s);
  EXPECT_EQ(lock.acquires()[1].wait, 0ms);
}

TEST(FakeLock, RefusesOnceEach) {
  FakeLock lock("a", "main");
  lock.refuse(errc::unavailable, "no route to host");
  lock.refuse(errc::timed_out);
  try {
    std::ignore = lock.acquire();
    FAIL() << "it was granted";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::unavailable);
    EXPECT_EQ(error.lock(), "a");
    EXPECT_EQ(error.store(), "main");
    EXPECT_EQ(error.server_text(), "no route to host");
  }
  EXPECT_FALSE(lock.try_acquire()) << "somebody else has it";
  EXPECT_THROW(std::ignore = lock.last_grant(), std::logic_error);
  EXPECT_TRUE(lock.try_acquire());
}

TEST(FakeLock, CompletionHandlersHaveAThread) {
  FakeLock lock;
  std::promise<std::thread::id> ran;
  lock.async_acquire([&](error_code ec, const LockHandle& held) {
    EXPECT_FALSE(ec);
    EXPECT_TRUE(held);
    ran.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
  EXPECT_TRUE(eventually(patience(), [&] { return lock.last_grant().is_released(); }));
}

TEST(FakeLock, AMutexCountsReentryPerLockObject) {
  const auto lock = std::make_shared<FakeLock>("same");
  Mutex one(lock);
  Mutex another(lock);
  one.lock();
  another.lock();
  EXPECT_EQ(lock->grants().size(), 1U) << "it was entered again";
  EXPECT_TRUE(lock->last_grant().is_of_mutex());
  // Somebody else's lock of the same name is another.
  const auto stranger = std::make_shared<FakeLock>("same");
  Mutex elsewhere(stranger);
  EXPECT_EQ(elsewhere.held(), nullptr);
  elsewhere.lock();
  EXPECT_EQ(stranger->grants().size(), 1U);
  elsewhere.unlock();
  another.unlock();
  EXPECT_FALSE(lock->last_grant().is_released());
  one.unlock();
  EXPECT_TRUE(lock->last_grant().is_released());
  EXPECT_THROW(one.unlock(), LockError);
}

TEST(FakeLock, AMutexOnAnotherThreadDoesNotReenter) {
  const auto lock = std::make_shared<FakeLock>();
  Mutex mutex(lock);
  const std::scoped_lock guard(mutex);
  std::thread([&] {
    EXPECT_EQ(mutex.held(), nullptr);
    lock->refuse(errc::timed_out);
    EXPECT_FALSE(mutex.try_lock());
  }).join();
}

/// What a user writes who counts how often locks are taken.
class Counting : public DistributedLock {
 public:
  explicit Counting(std::shared_ptr<DistributedLock> lock) : lock_(std::move(lock)) {}
  const std::string& name() const noexcept override { return lock_->name(); }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    ++acquires;
    return lock_->start_acquire(options, std::move(handler));
  }
  int acquires = 0;

 protected:
  const std::shared_ptr<DistributedLock> lock_;
};

/// And who wants its Mutexes to be those of the lock itself.
class SharingCounting final : public Counting {
 public:
  using Counting::Counting;
  detail::LockContext& context() const override { return lock_->context(); }
};

TEST(OwnLock, NameAndAcquireAreEnough) {
  const testing::Store store;
  auto locks = store.open();
  const auto counting = std::make_shared<Counting>(locks.lock("a"));
  Mutex mutex(counting);
  {
    const std::scoped_lock outer(mutex);
    const std::scoped_lock inner(mutex);
    EXPECT_EQ(counting->acquires, 1);
    EXPECT_EQ(store.held("a"), mutex.held()->token());
    Mutex itself(locks.lock("a"));
    EXPECT_FALSE(itself.try_lock()) << "the lock around it is another";
  }
  std::promise<bool> granted;
  counting->async_acquire(
      [&](error_code, const LockHandle& held) { granted.set_value(static_cast<bool>(held)); });
  EXPECT_TRUE(granted.get_future().get());
  EXPECT_EQ(counting->acquires, 2);
}

TEST(OwnLock, MayShareReentryWithTheLockInside) {
  const testing::Store store;
  auto locks = store.open();
  Mutex mutex(std::make_shared<SharingCounting>(locks.lock("a")));
  const std::scoped_lock outer(mutex);
  Mutex itself(locks.lock("a"));
  EXPECT_TRUE(itself.try_lock());
  itself.unlock();
}

TEST(OwnLock, ItsContextIsMadeOnceWhoeverComesFirst) {
  for (int round = 0; round < 200; ++round) {
    const FakeLock lock;
    detail::LockContext* seen[2] = {};
    std::thread other([&] { seen[1] = &lock.context(); });
    seen[0] = &lock.context();
    other.join();
    ASSERT_EQ(seen[0], seen[1]);
  }
}

}  // namespace
}  // namespace dlock::tests
