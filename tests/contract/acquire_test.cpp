// SPDX-License-Identifier: Apache-2.0
//
// Taking a lock, not getting it, giving it back, losing it.
#include <future>
#include <thread>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class AcquireContract : public Contract {};
DLOCK_CONTRACT(AcquireContract);

TEST_P(AcquireContract, AcquireAndRelease) {
  auto manager = open();
  const auto lock = manager.lock("a");
  auto held = lock->acquire();
  ASSERT_TRUE(held);
  EXPECT_EQ(held.name(), "a");
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(held.token().has_value(), capabilities().token != TokenStrength::none);
  EXPECT_EQ(held.remaining().has_value(), capabilities().lease_scope != LeaseScope::none);
  EXPECT_NO_THROW(held.check());
  EXPECT_TRUE(observer().status("a").held);
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(held);
  EXPECT_EQ(held.state(), HandleState::released);
  EXPECT_FALSE(observer().status("a").held);
  EXPECT_FALSE(lock->acquire().release()) << "and again";
}

TEST_P(AcquireContract, TryAcquireSaysBusyAndLeavesNothing) {
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  error_code ec = make_error_code(errc::protocol);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(manager.lock("a")->try_acquire({}, {}, ec));
    EXPECT_FALSE(ec) << ec.message();
  }
  EXPECT_TRUE(waiters_become("a", 0));
  other->release();
  auto held = manager.lock("a")->try_acquire({.wait = 30s});
  ASSERT_TRUE(held);
}

TEST_P(AcquireContract, TryAcquireWithAWaitGetsWhatIsReleasedMeanwhile) {
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  auto waiting_one = std::async(std::launch::async, [&] {
    return manager.lock("a")->try_acquire({.wait = 60s}).has_value();
  });
  ASSERT_TRUE(waiters_become("a", 1));
  other->release();
  EXPECT_TRUE(waiting_one.get());
}

TEST_P(AcquireContract, AWaitEndsInTimeAndLeavesNothing) {
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  manager.connect();
  const auto started = testkit::Clock::now();
  const auto ec = error_of([&] { (void)manager.lock("a")->acquire({.wait = 300ms}); });
  const auto waited = testkit::Clock::now() - started;
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
  EXPECT_GE(waited, 300ms);
  EXPECT_LT(waited, 30s);
  EXPECT_TRUE(waiters_become("a", 0)) << "the waiter that gave up is still in the store";
  other->release();
  EXPECT_TRUE(manager.lock("a")->acquire({.wait = 30s}));
}

TEST_P(AcquireContract, AWaiterIsServed) {
  const auto other = peer("a");
  const auto first = other->wait_held(patience());
  ASSERT_TRUE(first);
  auto manager = open();
  auto waiter = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(); });
  ASSERT_TRUE(waiters_become("a", 1));
  EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
  other->release();
  const auto held = waiter.get();
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_P(AcquireContract, F44_ReleaseFromAnotherThread) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  error_code ec = make_error_code(errc::protocol);
  std::thread([&ec, moved = std::move(held)]() mutable { ec = moved.release(); }).join();
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(AcquireContract, ADestroyedHandleGivesTheLockBack) {
  auto manager = open();
  { const auto held = manager.lock("a")->acquire(); }
  EXPECT_TRUE(manager.lock("a")->acquire({.wait = 30s}));
  auto held = manager.lock("a")->acquire({.wait = 30s});
  held = manager.lock("b")->acquire();
  EXPECT_TRUE(becomes_free("a")) << "assigned over";
}

TEST_P(AcquireContract, TwoManagersExcludeEachOther) {
  auto one = open();
  auto two = open();
  auto held = one.lock("a")->acquire();
  EXPECT_FALSE(two.lock("a")->try_acquire());
  EXPECT_FALSE(one.lock("a")->try_acquire()) << "the owner is the handle, not the manager";
  EXPECT_TRUE(two.lock("b")->try_acquire()) << "another name is another lock";
  held.release();
  EXPECT_TRUE(two.lock("a")->try_acquire({.wait = 30s}));
}

TEST_P(AcquireContract, HandlesMayOutliveTheirManager) {
  LockHandle held;
  std::shared_ptr<DistributedLock> lock;
  {
    auto manager = open();
    lock = manager.lock("a");
    held = lock->acquire();
  }
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::closed);
  EXPECT_TRUE(held.stop_token().stop_requested());
  EXPECT_EQ(error_of([&] { held.check(); }), errc::lock_lost);
  EXPECT_TRUE(held.release());
  EXPECT_EQ(error_of([&] { (void)lock->acquire(); }), errc::closed);
  EXPECT_TRUE(becomes_free("a")) << "closing gives back what is held";
}

TEST_P(AcquireContract, ClosingEndsWaits) {
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  auto waiter = std::async(std::launch::async, [lock = manager.lock("a")] {
    return error_of([&] { (void)lock->acquire(); });
  });
  ASSERT_TRUE(waiters_become("a", 1));
  manager.close();
  EXPECT_EQ(waiter.get(), errc::closed);
  EXPECT_TRUE(waiters_become("a", 0));
}

TEST_P(AcquireContract, ALostLockIsToldOnceAndItsReleaseSaysSo) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  std::promise<LossReason> lost;
  std::atomic<int> told{0};
  held.on_state([&](HandleState state, LossReason why) {
    if (state == HandleState::lost && told++ == 0) lost.set_value(why);
  });
  harness().take_away(observer(), url(), "a");
  auto reason = lost.get_future();
  ASSERT_EQ(reason.wait_for(60s), std::future_status::ready);
  const auto why = reason.get();
  EXPECT_TRUE(why == LossReason::removed || why == LossReason::broken || why == LossReason::taken)
      << to_string(why);
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_TRUE(held.stop_token().stop_requested());
  EXPECT_EQ(error_of([&] { held.check(); }), errc::lock_lost);
  auto next = open().lock("a")->acquire({.wait = 30s});
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(told, 1);
}

TEST_P(AcquireContract, TheNextOwnerIsLeftAloneByTheReleaseOfALostLock) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  harness().take_away(observer(), url(), "a");
  ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  const auto next = peer("a");
  ASSERT_TRUE(next->wait_held(patience()));
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(manager.lock("a")->try_acquire()) << "still held by the next owner";
  EXPECT_TRUE(observer().status("a").held);
}

}  // namespace
}  // namespace dlock::contract
