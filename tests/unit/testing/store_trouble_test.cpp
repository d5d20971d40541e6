// SPDX-License-Identifier: Apache-2.0
//
// The store of users' tests out of reach, while managers close, and commanded by several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/testing/store.hpp"
#include "tests/unit/testing/support.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::Event;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::Store;
using testkit::eventually;
using testkit::patience;

TEST(TestingStoreReach, SuspectAndHeldAgain) {
  Store store;
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  const Diary diary(held);
  store.out_of_reach();
  EXPECT_TRUE(diary.reaches(1));
  EXPECT_EQ(held.state(), HandleState::suspect);
  store.reachable();
  EXPECT_TRUE(diary.reaches(2));
  EXPECT_THAT(diary.told(), ElementsAre(Pair(HandleState::suspect, LossReason::none),
                                        Pair(HandleState::held, LossReason::none)));
  EXPECT_FALSE(held.release());
}

TEST(TestingStoreReach, LostByTheLocalDeadlineAndFreeWhenTheLeaseIsOver) {
  Store store(kShort);
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  const Diary diary(held);
  store.out_of_reach();
  EXPECT_TRUE(diary.reaches(2));
  EXPECT_EQ(held.loss_reason(), LossReason::expired);
  EXPECT_TRUE(eventually(patience(), [&] { return !store.held("a"); }));
  store.reachable();
  EXPECT_EQ(locks.lock("a")->acquire({.wait = 30s}).token(), 2U);
}

TEST(TestingStoreReach, WhoWaitsElsewhereGetsItWhenTheLeaseIsOver) {
  Store store({.lease = 1s, .patience = 10s});
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  auto others = store.open(quiet());
  auto waits = std::async(std::launch::async, [&] { return others.lock("a")->acquire(); });
  EXPECT_TRUE(store.wait_for_waiting("a"));
  store.out_of_reach();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  store.reachable();
  const auto next = waits.get();
  EXPECT_GT(next.token(), held.token());
}

TEST(TestingStoreReach, AcquiresSayWhy) {
  Store store(kShort);
  auto locks = store.open(quiet());
  store.out_of_reach("a digger was here");
  const auto first = error_of([&] { std::ignore = locks.lock("a")->acquire(); });
  ASSERT_TRUE(first);
  EXPECT_EQ(first->code(), errc::unavailable);
  EXPECT_THAT(first->server_text(), HasSubstr("a digger was here"));
  store.reachable();
  EXPECT_TRUE(locks.lock("a")->acquire());
}

TEST(TestingStoreReach, WhoWaitedLeavesNoPlace) {
  Store store(kShort);
  auto locks = store.open(quiet());
  ASSERT_TRUE(store.hold("a"));
  auto waits = std::async(std::launch::async, [&] {
    return error_of([&] { std::ignore = locks.lock("a")->acquire(); });
  });
  EXPECT_TRUE(store.wait_for_waiting("a"));
  store.out_of_reach();
  const auto error = waits.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::unavailable);
  EXPECT_TRUE(eventually(patience(), [&] { return store.waiting("a") == 0; }));
  store.reachable();
}

TEST(TestingStoreReach, WhatWasLostMeanwhileIsToldAfterwards) {
  Store store({.lease = 60s, .patience = 1s});
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  store.out_of_reach();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::suspect; }));
  EXPECT_TRUE(store.lose("a", LossReason::taken));
  EXPECT_EQ(held.state(), HandleState::suspect);
  store.reachable();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::taken);
}

TEST(TestingStoreReach, WhoseLeaseIsOverHasNothingToLose) {
  Store store({.lease = 200ms, .patience = 100ms});
  std::optional<LockManager> locks(store.open(quiet()));
  const auto held = locks->lock("a")->acquire();
  const auto token = held.token().value();
  store.out_of_reach();
  locks.reset();  // what it gives back does not come through
  EXPECT_TRUE(eventually(patience(), [&] { return !store.held("a"); }));
  EXPECT_FALSE(store.lose("a"));
  EXPECT_EQ(store.count(Event::Kind::lost, "a"), 1U) << "it was lost by its lease";
  EXPECT_TRUE(store.hold("a"));
  EXPECT_GT(store.held("a"), token);
}

TEST(TestingStoreReach, ALossOfWhoHasGoneIsNotWaitedFor) {
  Store store({.lease = 1h, .patience = 100ms});
  std::optional<LockManager> locks(store.open(quiet()));
  const auto held = locks->lock("a")->acquire();
  store.out_of_reach();
  locks.reset();
  store.reachable();
  const auto other = store.open(quiet());
  const auto begun = BoottimeClock::now();
  EXPECT_TRUE(store.lose("a"));
  EXPECT_LT(BoottimeClock::now() - begun, 5s);
}

TEST(TestingStoreClose, InTheMiddleOfADelayedAcquire) {
  Store store(kShort);
  auto locks = store.open(quiet());
  store.delay(1h);
  auto waits = std::async(std::launch::async, [&] {
    return error_of([&] { std::ignore = locks.lock("a")->acquire(); });
  });
  EXPECT_TRUE(store.wait_for(Event::Kind::granted, "a"));
  locks.close();
  const auto error = waits.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::closed);
}

TEST(TestingStoreClose, OutOfReachAndWithALockHeld) {
  Store store(kShort);
  auto locks = store.open(quiet());
  const auto held = locks.lock("a")->acquire();
  store.out_of_reach();
  locks.close();
  EXPECT_EQ(held.state(), HandleState::lost);
  store.reachable();
  auto next = store.open(quiet());
  EXPECT_TRUE(next.lock("a")->acquire({.wait = 30s})) << "the lease of the first ends";
}

TEST(TestingStoreClose, ALossThatNobodyCanBeToldOfIsNotWaitedFor) {
  Store store;
  std::optional<LockManager> locks(store.open(quiet()));
  auto held = locks->lock("a")->acquire();
  std::promise<void> begun;
  std::promise<void> end;
  held.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
  });
  auto closing = std::async(std::launch::async, [&] { locks->close(); });
  begun.get_future().wait();
  store.lose("a");
  end.set_value();
  closing.get();
  EXPECT_EQ(held.loss_reason(), LossReason::closed);
  EXPECT_FALSE(store.lose("a"));
  store.delay(1ms);
  store.out_of_reach();
  store.reachable();
}

// Whatever is commanded meanwhile: no grant is given twice, and all is well in the end.
TEST(TestingStore, CommandsFromOtherThreadsAtAnyMoment) {
  Store store({.lease = 2s, .patience = 200ms});
  std::atomic<bool> over = false;
  std::mutex mutex;
  std::set<std::uint64_t> tokens;
  std::atomic<std::size_t> granted = 0;
  std::vector<std::thread> threads;
  // Commands at every moment, but not so many that nothing else happens.
  const auto until_the_next = [&] {
    store.wait_for(Event::Kind::granted, "a", store.count(Event::Kind::granted, "a") + 1, 50ms);
  };
  const auto work = [&] {
    auto locks = store.open(quiet());
    auto lock = locks.lock("a");
    while (!over) {
      error_code ec;
      auto held = lock->acquire({.wait = 50ms}, {}, ec);
      if (ec) continue;
      ++granted;
      const std::lock_guard guard(mutex);
      tokens.insert(held.token().value());
      held.release();
    }
  };
  threads.emplace_back(work);
  threads.emplace_back(work);
  threads.emplace_back([&] {
    for (unsigned turn = 0; !over; ++turn) {
      store.lose("a", LossReason::evicted);
      if (turn % 4 == 0) store.refuse(errc::unavailable, "for a moment", 1);
      until_the_next();
    }
  });
  threads.emplace_back([&] {
    while (!over) {
      store.delay(1ms);
      store.out_of_reach();
      store.reachable();
      store.delay(0ms);
      if (store.hold("a")) store.let_go("a");
      until_the_next();
    }
  });
  EXPECT_TRUE(eventually(patience(), [&] { return granted >= 100; }));
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(tokens.size(), granted);
  store.allow();
  auto locks = store.open(quiet());
  EXPECT_TRUE(locks.lock("a")->acquire({.wait = 30s}));
}

}  // namespace
}  // namespace dlock::tests
