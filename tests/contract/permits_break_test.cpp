// SPDX-License-Identifier: Apache-2.0
//
// An operator looks for semaphores, and takes permits from a holder.
#include <algorithm>
#include <atomic>
#include <future>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class PermitsBreakContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    if (!HasFatalFailure() && !capabilities().permits) GTEST_SKIP() << "it has no semaphores";
  }

  SemaphoreStatus status() { return observer().semaphore_status("s"); }
  std::string words_of(std::uint64_t token) {
    try {
      observer().evict_permits("s", token, {.at_once = true});
    } catch (const LockError& error) {
      return error.what();
    }
    return {};
  }
};
DLOCK_CONTRACT(PermitsBreakContract);

TEST_P(PermitsBreakContract, ListShowsSemaphoresBelowAPrefixWithTheirLimits) {
  auto manager = open();
  EXPECT_TRUE(observer().list_semaphores().empty());
  auto some = manager.semaphore("a/b", 3).acquire(2);
  manager.set_semaphore("a", 5);
  manager.set_semaphore("ab", 7);
  auto lock = manager.lock("a/c")->acquire();
  const auto all = observer().list_semaphores();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at(0).name, "a");
  EXPECT_EQ(all.at(0).limit, 5U);
  EXPECT_EQ(all.at(0).held(), 0U);
  EXPECT_EQ(all.at(1).name, "a/b");
  EXPECT_EQ(all.at(1).held(), 2U);
  EXPECT_EQ(all.at(1).holders.at(0).token, some.token());
  EXPECT_EQ(all.at(2).name, "ab");
  EXPECT_EQ(observer().list_semaphores("a").size(), 2U) << "whole parts";
  EXPECT_EQ(observer().list_semaphores("a/b").size(), 1U);
  EXPECT_TRUE(observer().list_semaphores("x").empty());
  const auto locks = observer().list();
  ASSERT_EQ(locks.size(), 1U) << "a semaphore is no lock";
  EXPECT_EQ(locks.at(0).name, "a/c");
}

TEST_P(PermitsBreakContract, ANameTooLongForAFileIsListedToo) {
  const std::string name = std::string(200, 'x') + "/" + std::string(100, 'y');
  auto manager = open();
  auto held = manager.semaphore(name, 2).acquire();
  const auto all = observer().list_semaphores();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.at(0).name, name);
  EXPECT_EQ(all.at(0).limit, 2U);
}

TEST_P(PermitsBreakContract, BreakTakesAllOfOneAcquisitionAndNothingElse) {
  EXPECT_EQ(error_of([&] { observer().evict_permits("s", 1, {.at_once = true}); }),
            errc::not_found);
  const auto other = permits_peer("s", 1, 4);
  ASSERT_TRUE(other->wait_held(patience()));
  const auto holder = permits_peer("s", 3, 4);
  const auto token = holder->wait_held(patience());
  ASSERT_TRUE(token);
  if (!capabilities().can_evict) {
    EXPECT_EQ(error_of([&] { observer().evict_permits("s", *token, {.at_once = true}); }),
              errc::not_supported);
    const auto pid = std::to_string(status().holders.back().owner.pid);
    EXPECT_NE(words_of(*token).find(pid), std::string::npos) << words_of(*token);
    EXPECT_EQ(status().held(), 4U);
    return;
  }
  EXPECT_EQ(error_of([&] { observer().evict_permits("s", *token + 1, {.at_once = true}); }),
            errc::not_holder);
  const auto words = words_of(*token + 1);
  for (const auto& one : status().holders) {
    EXPECT_NE(words.find("token " + std::to_string(one.token.value())), std::string::npos) << words;
  }
  EXPECT_EQ(status().held(), 4U) << "nobody was touched";
  auto manager = open();
  auto waiter = std::async(std::launch::async,
                           [&] { return manager.semaphore("s", 4).acquire(3, {.wait = 60s}); });
  ASSERT_TRUE(eventually(patience(), [&] { return status().waiting.size() == 1; }));
  // A store may begin to look for breaks a moment after the grant.
  ASSERT_TRUE(eventually(patience(), [&] {
    return status().holders.back().held_for.value_or(std::chrono::hours(1)) >= 500ms;
  }));
  observer().evict_permits("s", *token, {.at_once = true});
  const auto reason = holder->wait_lost(patience());
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, "broken");
  auto next = waiter.get();
  EXPECT_EQ(next.permits(), 3U);
  EXPECT_TRUE(other->is_held());
  EXPECT_EQ(status().held(), 4U) << "never more than there are";
  EXPECT_NE(error_of([&] { observer().evict_permits("s", *token, {.at_once = true}); }),
            error_code())
      << "it is gone";
  EXPECT_FALSE(next.release());
  EXPECT_EQ(status().held(), 1U);
}

// What an operator may do in haste.
TEST_P(PermitsBreakContract, BrokenTwiceAtOnceItIsTakenOnce) {
  if (!capabilities().can_evict) GTEST_SKIP() << "it cannot take anything away";
  auto manager = open();
  auto other = open();
  auto slots = manager.semaphore("s", 3);
  for (int round = 0; round < 5; ++round) {
    auto stays = slots.acquire();
    auto goes = slots.acquire(2);
    std::atomic<int> done = 0;
    const auto strike = [&](LockManager& by) {
      try {
        by.evict_permits("s", goes.token().value(), {.at_once = true});
        ++done;
      } catch (const LockError& error) {
        EXPECT_TRUE(error.code() == errc::not_holder || error.code() == errc::not_found)
            << error.what();
      }
    };
    auto first = std::async(std::launch::async, [&] { strike(observer()); });
    strike(other);
    first.get();
    EXPECT_GE(done, 1);
    EXPECT_TRUE(eventually(patience(), [&] { return status().held() == 1; }));
    EXPECT_TRUE(eventually(patience(), [&] { return goes.state() == HandleState::lost; }));
    EXPECT_EQ(goes.release(), errc::lock_lost);
    EXPECT_EQ(stays.state(), HandleState::held);
    EXPECT_FALSE(stays.release());
  }
  EXPECT_EQ(status().free(), 3U);
}

}  // namespace
}  // namespace dlock::contract
