// SPDX-License-Identifier: Apache-2.0
//
// The store of users' tests: readers, permits of semaphores, and locks that are asked back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <vector>

#include "dlock/leader.hpp"
#include "dlock/testing/store.hpp"
#include "tests/unit/testing/support.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using testing::Event;
using testing::Store;
using testkit::eventually;
using testkit::patience;

constexpr AcquireOptions kAsReader{.wait = 30s, .mode = Mode::shared};

TEST(TestingStoreReaders, ReadersAreTogetherAndAreLostTogether) {
  Store store;
  auto one = store.open(quiet());
  auto other = store.open(quiet());
  auto first = one.lock("a")->acquire(kAsReader);
  auto second = other.lock("a")->acquire(kAsReader);
  EXPECT_FALSE(store.hold("a")) << "a writer is kept out";
  EXPECT_TRUE(store.hold("a", Mode::shared)) << "a reader is not";
  store.let_go("a");
  EXPECT_EQ(store.held("a"), first.token());
  EXPECT_TRUE(store.lose("a", LossReason::expired));
  for (const auto* const each : {&first, &second}) {
    EXPECT_EQ(each->state(), HandleState::lost);
    EXPECT_EQ(each->loss_reason(), LossReason::expired);
  }
  EXPECT_EQ(store.count(Event::Kind::lost, "a"), 2U);
  EXPECT_FALSE(store.held("a"));
}

TEST(TestingStoreReaders, AWriterBecomesAReaderAndMayBeLostAsOne) {
  Store store;
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  EXPECT_FALSE(held.downgrade());
  EXPECT_EQ(held.mode(), Mode::shared);
  auto other = store.open(quiet());
  auto reader = other.lock("a")->acquire(kAsReader);
  EXPECT_FALSE(reader.release());
  store.out_of_reach();
  auto again = held.downgrade();
  EXPECT_FALSE(again) << "it is one already";
  store.reachable();
  EXPECT_TRUE(store.lose("a"));
  EXPECT_EQ(held.state(), HandleState::lost);
}

TEST(TestingStoreReaders, AReaderWhoseLeaseIsOverKeepsNobodyOut) {
  Store store(kShort);
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire(kAsReader);
  store.out_of_reach();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_TRUE(eventually(patience(), [&] { return store.hold("a"); }));
  store.let_go("a");
  store.reachable();
}

TEST(TestingStorePermits, NeverMoreThanThereAreAndSomebodyElseHasSome) {
  Store store;
  auto locks = store.open(quiet());
  EXPECT_TRUE(store.hold_permits("s", 2, 3));
  EXPECT_FALSE(store.hold_permits("other", 4, 3)) << "more than there are";
  EXPECT_EQ(store.permits_held("s"), 2U);
  const auto slots = locks.semaphore("s", 3);
  auto held = slots.acquire();
  EXPECT_EQ(store.permits_held("s"), 3U);
  EXPECT_FALSE(slots.try_acquire());
  auto waits = std::async(std::launch::async, [&] { return slots.acquire(2); });
  EXPECT_TRUE(store.wait_for_waiting_for_permits("s"));
  EXPECT_EQ(store.waiting("s"), 0U) << "for the lock of that name nobody waits";
  store.let_go_permits("s");
  EXPECT_EQ(waits.get().permits(), 2U);
  EXPECT_FALSE(store.hold("s") && store.held("s") != 1U) << "a lock is another thing";
  EXPECT_EQ(store.history().front().permits, 1U);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(store.permits_held("s"), 0U);
}

TEST(TestingStorePermits, AreLostOnCommandAllOrOnesOfOneAcquisition) {
  Store store;
  auto locks = store.open(quiet());
  const auto slots = locks.semaphore("s", 5);
  auto one = slots.acquire();
  auto two = slots.acquire(2);
  EXPECT_FALSE(store.lose("s")) << "there is no lock";
  EXPECT_TRUE(store.lose_permits("s", LossReason::expired, two.token()));
  EXPECT_EQ(two.state(), HandleState::lost);
  EXPECT_EQ(two.loss_reason(), LossReason::expired);
  EXPECT_EQ(one.state(), HandleState::held);
  EXPECT_EQ(store.permits_held("s"), 1U);
  EXPECT_TRUE(store.lose_permits("s"));
  EXPECT_EQ(one.loss_reason(), LossReason::removed);
  EXPECT_FALSE(store.lose_permits("s"));
  EXPECT_EQ(two.release(), errc::lock_lost);
  EXPECT_EQ(locks.semaphore_status("s").free(), 5U);
}

TEST(TestingStore, AHeadStartPassesWhoCameInThatTime) {
  Store store;
  auto locks = store.open(quiet());
  auto others = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  std::mutex mutex;
  std::vector<std::chrono::milliseconds> order;
  const auto wait_with = [&](std::chrono::milliseconds head_start) {
    return std::async(std::launch::async, [&, head_start] {
      const auto got = others.lock("a")->acquire({.wait = 60s, .head_start = head_start});
      const std::lock_guard lock(mutex);
      order.push_back(head_start);
    });
  };
  const auto waits = [&](std::size_t count) {
    return eventually(patience(), [&] { return locks.status("a").waiting.size() == count; });
  };
  const auto first = wait_with(0ms);
  ASSERT_TRUE(waits(1));
  const auto second = wait_with(1h);
  ASSERT_TRUE(waits(2));
  EXPECT_FALSE(held.release());
  first.wait();
  second.wait();
  EXPECT_EQ(order, (std::vector<std::chrono::milliseconds>{1h, 0ms}));
}

TEST(TestingStorePermits, RefusalsDelaysAndACutLinkAreAsForLocks) {
  Store store(kShort);
  auto locks = store.open(quiet());
  const auto slots = locks.semaphore("s", 2);
  store.refuse(errc::access_denied, "not you", 1);
  const auto refused = error_of([&] { static_cast<void>(slots.acquire()); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::access_denied);
  auto held = slots.acquire(2);
  store.out_of_reach();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  store.reachable();
  EXPECT_TRUE(eventually(patience(), [&] { return store.permits_held("s") == 0; }));
  EXPECT_EQ(slots.acquire(2, {.wait = 30s}).permits(), 2U);
}

TEST(TestingStorePermits, AnOperatorBreaksThem) {
  Store store;
  auto locks = store.open(quiet());
  auto operators = store.open(quiet());
  auto held = locks.semaphore("s", 2).acquire();
  operators.evict_permits("s", held.token().value(), {.at_once = true});
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::broken);
  EXPECT_EQ(operators.list_semaphores().size(), 1U);
}

TEST(TestingStoreAsking, WhoListensHearsThatItIsAskedBack) {
  Store store;
  auto locks = store.open(quiet());
  EXPECT_FALSE(store.ask_back("a")) << "nobody holds it";
  auto deaf = locks.lock("a")->acquire();
  EXPECT_FALSE(store.ask_back("a")) << "it does not listen";
  EXPECT_FALSE(deaf.release());
  AcquireOptions options;
  options.revocable = true;
  auto held = locks.lock("a")->acquire(options);
  std::promise<Revocation> asked;
  held.on_revoke([&](const Revocation& how) { asked.set_value(how); });
  EXPECT_TRUE(store.ask_back("a", 5s));
  EXPECT_EQ(asked.get_future().get().within, 5s);
  EXPECT_EQ(held.state(), HandleState::held) << "to give it back is its own part";
}

TEST(TestingStoreAsking, WhatIsAskedWhileTheLinkIsCutIsHeardAfterIt) {
  Store store;
  auto locks = store.open(quiet());
  AcquireOptions options;
  options.revocable = true;
  auto held = locks.lock("a")->acquire(options);
  std::atomic<int> asked = 0;
  held.on_revoke([&](const Revocation&) { ++asked; });
  store.out_of_reach();
  EXPECT_TRUE(store.ask_back("a"));
  EXPECT_EQ(asked, 0);
  store.reachable();
  EXPECT_TRUE(eventually(patience(), [&] { return asked == 1; }));
}

TEST(TestingStoreLeaders, ObserversHearOfEachChangeFromTheStore) {
  Store store;
  auto here = store.open(quiet());
  auto there = store.open(quiet());
  LeaderOptions options;
  options.observe_every = 1h;
  std::mutex mutex;
  std::vector<bool> told;
  Leader onlooker(there, "l", {}, options);
  onlooker.on_leader_changed([&](const std::optional<Owner>& who) {
    const std::lock_guard lock(mutex);
    told.push_back(who.has_value());
  });
  const auto reaches = [&](std::size_t count) {
    return eventually(patience(), [&] {
      const std::lock_guard lock(mutex);
      return told.size() == count;
    });
  };
  ASSERT_TRUE(reaches(1));
  ASSERT_TRUE(store.hold("l"));
  ASSERT_TRUE(reaches(2));
  store.let_go("l");
  ASSERT_TRUE(reaches(3));
  store.out_of_reach();
  Leader leader(here, "l", {}, options);
  leader.campaign();
  store.reachable();
  EXPECT_TRUE(reaches(4)) << "what could not be heard is told after it";
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told, (std::vector<bool>{false, true, false, true}));
}

}  // namespace
}  // namespace dlock::tests
