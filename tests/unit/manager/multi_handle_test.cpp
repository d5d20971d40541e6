// SPDX-License-Identifier: Apache-2.0
//
// The handle of a MultiLock: as good as the worst of its parts, and what it tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/testing/fake_lock.hpp"
#include "testkit/await.hpp"
#include "tests/unit/testing/support.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeHandle;
using testing::FakeLock;
using ::testing::IsEmpty;
using ::testing::Pair;

const auto kIsSuspect = Pair(HandleState::suspect, LossReason::none);
const auto kIsHeld = Pair(HandleState::held, LossReason::none);

/// `a` of store zk and `b` of store redis, both held by one handle.
class MultiHandle : public ::testing::Test {
 protected:
  const std::shared_ptr<FakeLock> lock_a = std::make_shared<FakeLock>("a", "zk");
  const std::shared_ptr<FakeLock> lock_b = std::make_shared<FakeLock>("b", "redis");
  MultiLock both{{lock_b, lock_a}};
  LockHandle held = both.acquire();
  FakeHandle a = lock_a->last_grant();
  FakeHandle b = lock_b->last_grant();
};

TEST_F(MultiHandle, SaysWhatItHolds) {
  EXPECT_TRUE(held);
  EXPECT_EQ(held.name(), "a // b");
  EXPECT_EQ(held.store(), "zk, redis");
  EXPECT_EQ(held.token(), std::nullopt);
  EXPECT_EQ(held.sequencer(), std::nullopt);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_NO_THROW(held.check());
}

TEST_F(MultiHandle, HasASequencerOfEachLockThatHasAToken) {
  lock_a->next_token(40);
  const auto next = both.acquire();
  ASSERT_EQ(next.sequencers().size(), 2U);
  EXPECT_EQ(next.sequencers()[0], Sequencer("a", Mode::exclusive, 40, "zk"));
  EXPECT_EQ(next.sequencers()[1], Sequencer("b", Mode::exclusive, 2, "redis"));
  lock_a->next_token(std::nullopt);
  EXPECT_THAT(both.acquire().sequencers(),
              ElementsAre(Sequencer("b", Mode::exclusive, 3, "redis")));
  const auto alone = lock_b->acquire();
  EXPECT_THAT(alone.sequencers(), ElementsAre(*alone.sequencer()));
  lock_b->next_token(std::nullopt);
  EXPECT_THAT(lock_b->acquire().sequencers(), IsEmpty());
  EXPECT_THAT(LockHandle().sequencers(), IsEmpty());
}

TEST_F(MultiHandle, IsAsGoodAsTheWorst) {
  a.become_suspect();
  EXPECT_EQ(held.state(), HandleState::suspect);
  EXPECT_NO_THROW(held.check());
  b.become_suspect();
  a.become_held();
  EXPECT_EQ(held.state(), HandleState::suspect);
  b.become_held();
  EXPECT_EQ(held.state(), HandleState::held);
  a.become_suspect();
  b.lose(LossReason::taken);
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::taken);
  EXPECT_EQ(held.remaining(), 0ns);
  const auto error = error_of([&] { held.check(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::lock_lost);
  EXPECT_EQ(error->lock(), "b");
  EXPECT_EQ(error->store(), "redis");
  EXPECT_EQ(error->server_text(), "taken");
  a.lose(LossReason::expired);
  EXPECT_EQ(held.loss_reason(), LossReason::taken) << "the first one's";
}

TEST_F(MultiHandle, TheSmallestRemainderCounts) {
  EXPECT_EQ(held.remaining(), std::nullopt);
  b.set_remaining(5s);
  EXPECT_EQ(held.remaining(), 5s);
  a.set_remaining(3s);
  EXPECT_EQ(held.remaining(), 3s);
  a.set_remaining(7s);
  EXPECT_EQ(held.remaining(), 5s);
}

TEST_F(MultiHandle, TellsChangesOfTheWholeOnly) {
  Diary diary(held);
  a.become_suspect();
  b.become_suspect();
  a.become_held();
  EXPECT_THAT(diary.told(), ElementsAre(kIsSuspect));
  b.become_held();
  EXPECT_THAT(diary.told(), ElementsAre(kIsSuspect, kIsHeld));
  b.lose(LossReason::failover);
  a.become_suspect();
  a.lose(LossReason::expired);
  EXPECT_THAT(diary.told(),
              ElementsAre(kIsSuspect, kIsHeld, Pair(HandleState::lost, LossReason::failover)));
}

TEST_F(MultiHandle, StopIsRequestedOnceBeforeTheLossIsTold) {
  Told told;
  held.on_state([&](HandleState state, LossReason why) { told.emplace_back(state, why); });
  int stops = 0;
  bool was_first = false;
  const std::stop_callback stopped(held.stop_token(), [&] {
    ++stops;
    was_first = told.empty();
  });
  b.lose();
  a.lose();
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(was_first);
  EXPECT_THAT(told, ElementsAre(Pair(HandleState::lost, LossReason::removed)));
}

TEST_F(MultiHandle, WhoAsksLateIsToldWhereItStands) {
  a.become_suspect();
  Diary second(held);
  EXPECT_THAT(second.told(), ElementsAre(kIsSuspect));
  a.become_held();
  EXPECT_THAT(second.told(), ElementsAre(kIsSuspect, kIsHeld));
  Diary third(held);
  EXPECT_THAT(third.told(), IsEmpty());
  b.lose(LossReason::taken);
  Diary last(held);
  EXPECT_THAT(last.told(), ElementsAre(Pair(HandleState::lost, LossReason::taken)));
  a.lose();
  EXPECT_THAT(last.told(), ElementsAre(Pair(HandleState::lost, LossReason::taken)));
  EXPECT_THAT(third.told(), ElementsAre(Pair(HandleState::lost, LossReason::taken)));
}

TEST_F(MultiHandle, WhatIsNotLostIsKeptUntilTheRelease) {
  a.lose();
  EXPECT_FALSE(b.is_released());
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(b.is_released());
  EXPECT_EQ(b.release_result(), error_code()) << "it was ours";
  EXPECT_FALSE(held);
  EXPECT_EQ(held.state(), HandleState::released);
}

TEST_F(MultiHandle, ADestroyedHandleGivesAllBack) {
  held = LockHandle();
  EXPECT_TRUE(a.is_released());
  EXPECT_TRUE(b.is_released());
}

TEST_F(MultiHandle, TheReleaseReturnsTheFirstErrorAndALossBeforeAll) {
  a.answer_release(make_error_code(errc::protocol));
  b.answer_release(make_error_code(errc::unavailable));
  EXPECT_EQ(held.release(), errc::unavailable) << "the last lock is given back first";
  EXPECT_TRUE(a.is_released()) << "all the same";

  auto next = both.acquire();
  lock_b->last_grant().answer_release(make_error_code(errc::unavailable));
  lock_a->last_grant().answer_release(make_error_code(errc::lock_lost));
  EXPECT_EQ(next.release(), errc::lock_lost);

  next = both.acquire();
  EXPECT_FALSE(next.release());
}

TEST_F(MultiHandle, NothingIsToldAfterTheRelease) {
  Diary diary(held);
  held.release();
  a.become_suspect();
  b.lose();
  EXPECT_THAT(diary.told(), IsEmpty());
}

TEST_F(MultiHandle, AReleaseWaitsForTheCallbackThatRuns) {
  std::promise<void> begun;
  std::promise<void> end;
  std::atomic<bool> is_over = false;
  held.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
    is_over = true;
  });
  std::thread commands([&] { a.lose(); });
  begun.get_future().wait();
  boost::asio::thread_pool pool(1);
  auto released = async_release(held, boost::asio::bind_executor(pool, boost::asio::use_future));
  EXPECT_EQ(released.wait_for(0s), std::future_status::timeout);
  end.set_value();
  EXPECT_THROW(released.get(), boost::system::system_error);
  EXPECT_TRUE(is_over);
  EXPECT_TRUE(b.is_released());
  commands.join();
}

TEST_F(MultiHandle, ABlockingReleaseWaitsToo) {
  std::promise<void> begun;
  std::promise<void> end;
  std::atomic<bool> is_over = false;
  held.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
    is_over = true;
  });
  std::thread commands([&] { b.become_suspect(); });
  begun.get_future().wait();
  auto released = std::async(std::launch::async, [&] {
    held.release();
    return is_over.load();
  });
  EXPECT_EQ(released.wait_for(20ms), std::future_status::timeout);
  end.set_value();
  EXPECT_TRUE(released.get());
  commands.join();
}

TEST_F(MultiHandle, ACallbackMayRelease) {
  error_code result;
  Told later;
  held.on_state([&](HandleState, LossReason) { result = held.release(); });
  held.on_state([&](HandleState state, LossReason why) { later.emplace_back(state, why); });
  a.lose();
  EXPECT_EQ(result, errc::lock_lost);
  EXPECT_TRUE(b.is_released());
  EXPECT_THAT(later, IsEmpty()) << "it was released";
}

TEST_F(MultiHandle, CallbacksRunOneAtATimeWhoeverHasNews) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> suspects = 0;
  held.on_state([&](HandleState state, LossReason) {
    most = std::max(most.load(), ++inside);
    if (state == HandleState::suspect) ++suspects;
    std::this_thread::yield();
    --inside;
  });
  const auto flap = [](FakeHandle part) {
    for (int i = 0; i < 500; ++i) {
      part.become_suspect();
      part.become_held();
    }
  };
  std::thread one(flap, a);
  std::thread other(flap, b);
  one.join();
  other.join();
  EXPECT_EQ(most, 1);
  EXPECT_GE(suspects, 1);
  EXPECT_LE(suspects, 1000);
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_F(MultiHandle, AStopThatIsDueIsRequestedThoughItIsReleased) {
  std::promise<void> begun;
  std::promise<void> end;
  Told told;
  held.on_state([&](HandleState state, LossReason why) {
    told.emplace_back(state, why);
    begun.set_value();
    end.get_future().wait();
  });
  const auto stop = held.stop_token();
  std::thread commands([&] { a.become_suspect(); });
  begun.get_future().wait();
  b.lose();  // is told when the callback returns
  EXPECT_FALSE(stop.stop_requested());
  held.start_release([](error_code) {});
  end.set_value();
  commands.join();
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_THAT(told, ElementsAre(kIsSuspect));
}

TEST_F(MultiHandle, HasNoDescriptorToInherit) { EXPECT_EQ(inheritable_descriptor(held), -1); }

}  // namespace
}  // namespace dlock::tests
