// SPDX-License-Identifier: Apache-2.0
//
// A MultiLock over stores at work: managers with a loop, leases, losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/mutex.hpp"
#include "dlock/testing/store.hpp"
#include "testkit/await.hpp"
#include "tests/unit/testing/support.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using Kind = testing::Event::Kind;
using testkit::eventually;
using testkit::patience;

std::vector<std::string> names_of(Kind kind, const testing::Store& store) {
  std::vector<std::string> names;
  for (const auto& event : store.history()) {
    if (event.kind == kind) names.push_back(event.name);
  }
  return names;
}

TEST(MultiStore, IsTakenInOrderAndGivenBackInReverse) {
  const testing::Store store;
  auto locks = store.open();
  auto held = locks.lock_all({"c", "a", "b"})->acquire();
  ASSERT_TRUE(held);
  EXPECT_THAT(names_of(Kind::granted, store), ElementsAre("a", "b", "c"));
  EXPECT_EQ(held.store(), "default");
  ASSERT_TRUE(held.remaining());
  EXPECT_GT(*held.remaining(), 1s);
  EXPECT_FALSE(held.release());
  EXPECT_THAT(names_of(Kind::released, store), ElementsAre("c", "b", "a"));
}

TEST(MultiStore, ADestroyedHandleGivesAllBack) {
  const testing::Store store;
  auto locks = store.open();
  { const auto held = locks.lock_all({"a", "b"})->acquire(); }
  EXPECT_TRUE(store.wait_for(Kind::released, "a"));
  EXPECT_TRUE(store.wait_for(Kind::released, "b"));
}

TEST(MultiStore, ATryGivesBackWhatItGot) {
  testing::Store store;
  auto locks = store.open();
  ASSERT_TRUE(store.hold("b"));
  EXPECT_FALSE(locks.lock_all({"a", "b", "c"})->try_acquire());
  EXPECT_TRUE(store.wait_for(Kind::released, "a"));
  EXPECT_EQ(store.count(Kind::granted, "c"), 0U);
  const auto error = error_of([&] {
    std::ignore = locks.lock_all({"a", "b"})->acquire({.wait = 50ms});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::timed_out);
  EXPECT_EQ(error->lock(), "b");
  EXPECT_EQ(error->store(), "default");
  EXPECT_EQ(error->server_text(), kHeldByAnother);
  EXPECT_TRUE(store.wait_for(Kind::released, "a", 2));
  store.let_go("b");
  EXPECT_TRUE(locks.lock_all({"a", "b", "c"})->try_acquire());
}

TEST(MultiStore, TheShortestWaitOfTheRoutesCountsForAll) {
  testing::Store store;
  auto config = store.config();
  const auto usual = config.locks.front();
  config.locks.clear();
  for (const auto& [match, wait] : {std::pair("a", 10min), std::pair("b", 1min)}) {
    auto route = usual;
    route.match = match;
    route.wait = wait;
    config.locks.push_back(route);
  }
  config.locks.push_back(usual);
  auto options = quiet();
  options.backends = {&testing::Store::backend()};
  auto locks = LockManager::from_config(config, options);
  EXPECT_EQ(locks.lock("a")->default_wait(), 10min);
  EXPECT_EQ(locks.lock("a")->store(), "default");
  EXPECT_EQ(locks.lock_all({"a", "b", "c"})->default_wait(), 1min);
  EXPECT_EQ(locks.lock_all({"c", "d"})->default_wait(), std::nullopt);
}

// Without one order for both, one would soon have `a` and the other `c`.
TEST(MultiStore, TwoInOppositeOrdersNeverBlockEachOther) {
  constexpr int kRounds = 1000;
  const testing::Store store;
  auto locks = store.open();
  long number = 0;  // nothing but the locks guards it
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto all = t == 0 ? locks.lock_all({"a", "b", "c"}) : locks.lock_all({"c", "b", "a"});
      for (int i = 0; i < kRounds; ++i) {
        auto held = all->acquire({.wait = 60s});
        ++number;
        ASSERT_FALSE(held.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 2 * kRounds);
}

// A lone caller runs the loop of a manager that he waits for; the other one's answer must end that.
TEST(MultiStore, WhoIsAloneIsAnsweredByWhicheverManagerIsLast) {
  const testing::Times patient{.lease = 60s};  // no timer of a renewal ends it
  const testing::Store one(patient);
  const testing::Store other(patient);
  auto of_one = one.open();
  auto of_other = other.open();
  MultiLock first({of_one.lock("a"), of_other.lock("b")});
  MultiLock second({of_other.lock("c"), of_one.lock("d")});
  for (int round = 0; round < 20; ++round) {
    for (auto* const all : {&first, &second}) {
      const auto began = testkit::Clock::now();
      auto held = all->acquire();
      ASSERT_LT(testkit::Clock::now() - began, 10s);
      ASSERT_FALSE(held.release());
      ASSERT_LT(testkit::Clock::now() - began, 10s);
    }
  }
}

TEST(MultiStore, LocksOfTwoManagersAreTakenTogether) {
  constexpr int kRounds = 200;
  const testing::Store one;
  const testing::Store other;
  auto of_one = one.open();
  auto of_other = other.open();
  std::atomic<long> number = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto a = of_one.lock("a");
      const auto b = of_other.lock("b");
      const auto c = of_one.lock("c");
      MultiLock all(t == 0 ? std::vector{a, b, c} : std::vector{c, b, a});
      for (int i = 0; i < kRounds; ++i) {
        auto held = all.acquire({.wait = 60s});
        const long read = number;
        std::this_thread::yield();
        number = read + 1;
        ASSERT_FALSE(held.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 2 * kRounds);
  EXPECT_EQ(one.count(Kind::released, "c"), other.count(Kind::released, "b"));
}

TEST(MultiStore, TheLossOfOneIsToldAndTheOthersAreKept) {
  testing::Store store;
  auto options = quiet();
  std::promise<Loss> told;
  options.on_loss = [&](const Loss& loss) { told.set_value(loss); };
  auto locks = store.open(std::move(options));
  auto held = locks.lock_all({"a", "b"})->acquire();
  Diary diary(held);
  const auto stop = held.stop_token();
  ASSERT_TRUE(store.lose("b", LossReason::evicted));
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::evicted);
  ASSERT_TRUE(diary.reaches(1));
  EXPECT_THAT(diary.told(), ElementsAre(std::pair(HandleState::lost, LossReason::evicted)));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_EQ(told.get_future().get().name, "b");
  EXPECT_TRUE(store.held("a")) << "until the work has stopped";
  Diary late(held);
  EXPECT_TRUE(late.reaches(1)) << "it has a thread to be told on";
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(store.held("a"));
}

TEST(MultiStore, ACallbackThatThrowsIsLoggedAndTheNextOneIsTold) {
  testing::Store store;
  OpenOptions options;
  std::promise<std::string> logged;
  options.log_losses = false;
  options.log = [&](LogLevel, std::string_view line) { logged.set_value(std::string(line)); };
  auto locks = store.open(std::move(options));
  auto held = locks.lock_all({"a", "b"})->acquire();
  held.on_state([](HandleState, LossReason) { throw std::runtime_error("a mistake"); });
  Diary diary(held);
  ASSERT_TRUE(store.lose("b"));
  EXPECT_TRUE(diary.reaches(1));
  EXPECT_THAT(logged.get_future().get(), ::testing::HasSubstr("a mistake"));
}

TEST(MultiStore, HandlersWithoutAnExecutorHaveTheManagersThread) {
  const testing::Store store;
  auto locks = store.open();
  std::promise<std::thread::id> first;
  std::promise<std::thread::id> second;
  LockHandle held;
  locks.lock_all({"a", "b"})->async_acquire([&](error_code, LockHandle got) {
    held = std::move(got);
    first.set_value(std::this_thread::get_id());
  });
  const auto thread = first.get_future().get();
  ASSERT_TRUE(held);
  async_release(held, [&](error_code) { second.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(second.get_future().get(), thread);
  EXPECT_FALSE(store.held("a"));
}

TEST(MultiStore, OneThatIsLostWhileAnotherIsWaitedForEndsTheAcquire) {
  testing::Store store;
  auto locks = store.open(quiet());
  ASSERT_TRUE(store.hold("c"));
  auto ended = std::async(std::launch::async, [&] {
    return error_of([&] { std::ignore = locks.lock_all({"a", "b", "c"})->acquire(); });
  });
  ASSERT_TRUE(store.wait_for_waiting("c"));
  ASSERT_TRUE(store.lose("a"));
  const auto error = ended.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::lock_lost);
  EXPECT_EQ(error->lock(), "a");
  EXPECT_EQ(error->server_text(), "removed");
  EXPECT_TRUE(store.wait_for(Kind::released, "b"));
  EXPECT_TRUE(eventually(patience(), [&] { return store.waiting("c") == 0; }));
}

TEST(MultiStore, AStoreOutOfReachMakesItSuspectAndThenLost) {
  testing::Store store(kShort);
  auto locks = store.open(quiet());
  auto held = locks.lock_all({"a", "b"})->acquire();
  Diary diary(held);
  store.out_of_reach();
  ASSERT_TRUE(diary.reaches(2));
  EXPECT_THAT(diary.told(), ElementsAre(std::pair(HandleState::suspect, LossReason::none),
                                        std::pair(HandleState::lost, LossReason::expired)));
}

TEST(MultiStore, ClosingEndsAnAcquireThatHasSomeOfThem) {
  testing::Store store;
  auto locks = store.open(quiet());
  ASSERT_TRUE(store.hold("b"));
  auto ended = std::async(std::launch::async, [all = locks.lock_all({"a", "b"})] {
    return error_of([&] { std::ignore = all->acquire(); });
  });
  ASSERT_TRUE(store.wait_for_waiting("b"));
  locks.close();
  const auto error = ended.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::closed);
  EXPECT_FALSE(store.held("a"));
}

TEST(MultiStore, ClosingWaitsForTheWorkUnderThemAsUnderOne) {
  const testing::Store store;
  auto locks = store.open(quiet());
  auto held = locks.lock_all({"a", "b"})->acquire();
  std::atomic<bool> was_held = false;
  std::thread work([&, stop = held.stop_token()] {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait(lock, stop, [] { return false; });
    was_held = store.held("a") && store.held("b");
    EXPECT_EQ(held.release(), errc::lock_lost);
  });
  locks.close();
  EXPECT_TRUE(was_held) << "it was given back before the work had stopped";
  work.join();
  EXPECT_EQ(held.state(), HandleState::released);
  EXPECT_FALSE(store.held("a"));
}

TEST(MultiStore, ReleasedJustWhenItIsLostItIsStillStopped) {
  for (int round = 0; round < 50; ++round) {
    testing::Store store;
    auto locks = store.open(quiet());
    auto held = locks.lock_all({"a", "b"})->acquire();
    const auto stop = held.stop_token();
    std::thread loses([&] { store.lose("b"); });
    while (held.state() != HandleState::lost) std::this_thread::yield();
    EXPECT_EQ(held.release(), errc::lock_lost);
    EXPECT_TRUE(eventually(patience(), [&] { return stop.stop_requested(); }));
    loses.join();
  }
}

}  // namespace
}  // namespace dlock::tests
