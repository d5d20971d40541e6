// SPDX-License-Identifier: Apache-2.0
//
// The store of users' tests: that each command does what its header says. For what comes of a link
// that is cut, and of commands at any moment: store_trouble_test.cpp.
#include "dlock/testing/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <tuple>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/memory.hpp"
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

std::vector<Event::Kind> kinds(const Store& store) {
  std::vector<Event::Kind> all;
  for (const auto& event : store.history()) all.push_back(event.kind);
  return all;
}

TEST(TestingStore, GrantsQueuesAndCounts) {
  const Store store;
  auto one = store.open(quiet());
  auto other = store.open(quiet());
  EXPECT_EQ(store.held("a"), std::nullopt);
  auto held = one.lock("a")->acquire();
  EXPECT_EQ(held.token(), 1U);
  EXPECT_EQ(store.held("a"), 1U);
  EXPECT_TRUE(held.remaining().has_value()) << "there is a lease";
  EXPECT_FALSE(other.lock("a")->try_acquire());
  auto waits = std::async(std::launch::async, [&] { return other.lock("a")->acquire(); });
  EXPECT_TRUE(store.wait_for_waiting("a"));
  EXPECT_FALSE(held.release());
  EXPECT_EQ(waits.get().token(), 2U);
  EXPECT_TRUE(store.wait_for(Event::Kind::released, "a", 2));
  EXPECT_THAT(kinds(store), ElementsAre(Event::Kind::granted, Event::Kind::released,
                                        Event::Kind::granted, Event::Kind::released));
  EXPECT_EQ(store.count(Event::Kind::granted, "a"), 2U);
  EXPECT_EQ(store.count(Event::Kind::granted, "b"), 0U);
  EXPECT_FALSE(store.wait_for(Event::Kind::lost, "a", 1, 1ms));
}

TEST(TestingStore, ALeaseIsBetweenATenthOfASecondAndADay) {
  const auto is_opened = [](std::chrono::milliseconds lease) {
    const Store store({.lease = lease});
    try {
      const auto locks = store.open(quiet());
      return true;
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::config_invalid);
      return false;
    }
  };
  EXPECT_FALSE(is_opened(99ms));
  EXPECT_TRUE(is_opened(100ms));
  EXPECT_TRUE(is_opened(24h));
  EXPECT_FALSE(is_opened(24h + 1ms));
}

TEST(TestingStore, DeclaresWhatItCan) {
  const Store store({.lease = 1234ms});
  const auto report = store.open(quiet()).inspect().at(0);
  ASSERT_TRUE(report.capabilities);
  const auto& can = *report.capabilities;
  EXPECT_EQ(report.backend, "testing");
  EXPECT_EQ(can.guarantee, Guarantee::exclusive);
  EXPECT_TRUE(can.fair && can.shared_mode && can.permits);
  EXPECT_TRUE(can.can_list && can.can_evict && can.can_head_start && can.can_ask);
  EXPECT_EQ(can.token, TokenStrength::durable);
  EXPECT_EQ(can.wake_up, WakeUp::push);
  EXPECT_EQ(can.lease_scope, LeaseScope::claim);
  EXPECT_EQ(can.lease, 1234ms);
  EXPECT_EQ(can.shortest_lease, 100ms);
  EXPECT_EQ(can.longest_lease, 24h);
}

TEST(TestingStore, StoresAreApartAndOutliveTheirManagers) {
  const Store one;
  const Store other;
  EXPECT_NE(one.url(), other.url());
  auto locks = other.open(quiet());
  const auto held = locks.lock("a")->acquire();
  {
    auto elsewhere = one.open(quiet());
    EXPECT_EQ(elsewhere.lock("a")->acquire().token(), 1U);
  }
  auto anew = one.open(quiet());
  EXPECT_EQ(anew.lock("a")->acquire().token(), 2U) << "a restart of the program";
}

TEST(TestingStore, AUrlLeadsThereAsLongAsThereIsAStore) {
  std::string url;
  {
    const Store store({.lease = 2s, .patience = 1s});
    url = store.url();
    auto options = quiet();
    options.backends = {&memory::backend(), &Store::backend()};
    auto locks = LockManager::open(url, options);
    const auto held = locks.lock("a")->acquire();
    EXPECT_LE(*held.remaining(), 2s);
    EXPECT_EQ(store.held("a"), held.token());
  }
  const auto error = error_of([&] { LockManager::open(url, {.backends = {&Store::backend()}}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::config_invalid);
  EXPECT_THAT(error->server_text(), HasSubstr("no dlock::testing::Store"));
}

TEST(TestingStoreLose, TheHandleIsLostWhenItReturns) {
  Store store;
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  const Diary diary(held);
  const auto stop = held.stop_token();
  EXPECT_TRUE(store.lose("a", LossReason::evicted));
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::evicted);
  EXPECT_TRUE(diary.reaches(1));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_THAT(diary.told(), ElementsAre(Pair(HandleState::lost, LossReason::evicted)));
  EXPECT_FALSE(store.lose("a")) << "nobody has it";
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(locks.lock("a")->acquire().token(), 2U);
  const auto history = store.history();
  ASSERT_GE(history.size(), 3U);
  EXPECT_EQ(history[1].kind, Event::Kind::lost);
  EXPECT_EQ(history[1].reason, LossReason::evicted);
  EXPECT_EQ(history[1].token, 1U);
}

TEST(TestingStoreLose, EveryReasonIsTold) {
  Store store;
  auto locks = store.open(quiet());
  for (const auto reason : {LossReason::expired, LossReason::session_ended, LossReason::removed,
                            LossReason::taken, LossReason::evicted, LossReason::store_restarted,
                            LossReason::failover, LossReason::broken}) {
    const auto held = locks.lock("a")->acquire();
    ASSERT_TRUE(store.lose("a", reason)) << to_string(reason);
    EXPECT_EQ(held.loss_reason(), reason);
  }
}

TEST(TestingStoreLose, ACallbackThatBlocksHoldsUpNeitherTheCommandNorAnotherLock) {
  Store store;
  auto locks = store.open(quiet());
  auto stuck = locks.lock("stuck")->acquire();
  std::promise<void> begun;
  std::promise<void> end;
  stuck.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
  });
  EXPECT_TRUE(store.lose("stuck"));
  begun.get_future().wait();
  auto other = locks.lock("other")->acquire();
  const Diary diary(other);
  EXPECT_TRUE(store.lose("other"));
  EXPECT_TRUE(diary.reaches(1));
  end.set_value();
  EXPECT_EQ(stuck.release(), errc::lock_lost);
}

TEST(TestingStoreLose, AnEvictionByTheManagerIsTheStoresToo) {
  const Store store;
  auto locks = store.open(quiet());
  const auto held = locks.lock("a")->acquire();
  auto operators = store.open(quiet());
  operators.evict("a", held.token().value(), {.at_once = true});
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  EXPECT_EQ(held.loss_reason(), LossReason::broken);
  EXPECT_EQ(store.count(Event::Kind::lost, "a"), 1U);
  EXPECT_EQ(operators.status("a").held, false);
}

TEST(TestingStoreDelay, AnAcquireThatWaitsForLessEndsAndLeavesNothing) {
  Store store;
  auto locks = store.open(quiet());
  store.delay(1h);
  const auto error = error_of([&] { std::ignore = locks.lock("a")->acquire({.wait = 20ms}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), errc::unavailable);
  EXPECT_TRUE(store.wait_for(Event::Kind::granted, "a")) << "what was asked for came through";
  store.delay(0ms);
  EXPECT_TRUE(store.wait_for(Event::Kind::released, "a")) << "and was withdrawn";
  EXPECT_EQ(locks.lock("a")->acquire().token(), 2U);
}

TEST(TestingStoreDelay, ItsEndLetsWaitingAnswersThrough) {
  Store store({.lease = 60s, .patience = 60s});
  auto locks = store.open(quiet());
  store.delay(1h);
  auto waits = std::async(std::launch::async, [&] { return locks.lock("a")->acquire(); });
  EXPECT_TRUE(store.wait_for(Event::Kind::granted, "a"));
  EXPECT_EQ(waits.wait_for(0s), std::future_status::timeout);
  store.delay(0ms);
  EXPECT_EQ(waits.get().token(), 1U);
}

TEST(TestingStoreDelay, EachAnswerTakesThatLong) {
  Store store;
  auto locks = store.open(quiet());
  locks.connect();
  store.delay(30ms);
  const auto begun = BoottimeClock::now();
  auto held = locks.lock("a")->acquire();
  EXPECT_GE(BoottimeClock::now() - begun, 30ms);
  EXPECT_FALSE(held.release());
  EXPECT_GE(BoottimeClock::now() - begun, 60ms);
}

TEST(TestingStoreDelay, AReleaseIsNotConfirmedInTime) {
  Store store({.lease = 1h, .patience = 100ms});
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  store.delay(1h);
  EXPECT_EQ(held.release(), errc::unavailable);
  EXPECT_EQ(store.count(Event::Kind::released, "a"), 1U);
  store.delay(0ms);
}

TEST(TestingStoreDelay, RenewalsThatComeTooLateLoseTheLock) {
  Store store(kShort);
  auto locks = store.open(quiet());
  auto held = locks.lock("a")->acquire();
  const Diary diary(held);
  store.delay(1h);
  EXPECT_TRUE(diary.reaches(2));
  EXPECT_THAT(diary.told(), ElementsAre(Pair(HandleState::suspect, LossReason::none),
                                        Pair(HandleState::lost, LossReason::expired)));
  store.delay(0ms);
}

TEST(TestingStoreRefuse, SoManyTimesWithTheStoresWords) {
  Store store;
  auto locks = store.open(quiet());
  store.refuse(errc::access_denied, "no write permission below /app", 2);
  for (int i = 0; i < 2; ++i) {
    const auto error = error_of([&] { std::ignore = locks.lock("a")->acquire(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), errc::access_denied);
    EXPECT_EQ(error->server_text(), "no write permission below /app");
  }
  EXPECT_TRUE(locks.lock("a")->acquire());
  EXPECT_EQ(store.count(Event::Kind::refused, "a"), 2U);
  store.refuse(errc::access_denied, {}, 0);
  EXPECT_TRUE(locks.lock("a")->acquire());
}

TEST(TestingStoreRefuse, WhatIsUnavailableIsAskedAgain) {
  Store store;
  auto locks = store.open(quiet());
  store.refuse(errc::unavailable, "busy with an election", 2);
  EXPECT_TRUE(locks.lock("a")->acquire({.wait = 30s}));
  EXPECT_EQ(store.count(Event::Kind::refused, "a"), 2U);
}

TEST(TestingStoreRefuse, UntilItIsAllowed) {
  Store store;
  auto locks = store.open(quiet());
  store.refuse(errc::unavailable, "down for maintenance");
  for (int i = 0; i < 3; ++i) {
    const auto error = error_of([&] { std::ignore = locks.lock("a")->try_acquire(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), errc::unavailable);
    EXPECT_THAT(error->server_text(), HasSubstr("down for maintenance"));
  }
  store.allow();
  EXPECT_TRUE(locks.lock("a")->try_acquire());
}

TEST(TestingStoreHold, SomebodyElseHasItUntilHeLetsGo) {
  Store store;
  auto locks = store.open(quiet());
  EXPECT_TRUE(store.hold("a"));
  EXPECT_FALSE(store.hold("a"));
  EXPECT_EQ(store.held("a"), 1U);
  EXPECT_FALSE(locks.lock("a")->try_acquire());
  EXPECT_FALSE(store.lose("a")) << "that is not for the program's locks";
  auto waits = std::async(std::launch::async, [&] { return locks.lock("a")->acquire(); });
  EXPECT_TRUE(store.wait_for_waiting("a"));
  store.let_go("a");
  EXPECT_EQ(waits.get().token(), 2U);
  store.let_go("a");
  store.let_go("never held");
  EXPECT_TRUE(eventually(patience(), [&] { return store.hold("a"); })) << "it was given back";
}

TEST(TestingStoreTokens, StartWhereTheTestSays) {
  Store store;
  auto locks = store.open(quiet());
  store.tokens_from(1'000'000);
  EXPECT_EQ(locks.lock("a")->acquire().token(), 1'000'000U);
  EXPECT_EQ(locks.lock("a")->acquire().token(), 1'000'001U);
  store.tokens_from(5);
  EXPECT_EQ(locks.lock("a")->acquire().token(), 1'000'002U) << "they rise in any case";
  EXPECT_EQ(locks.lock("b")->acquire().token(), 5U);
}

}  // namespace
}  // namespace dlock::tests
