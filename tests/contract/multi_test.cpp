// SPDX-License-Identifier: Apache-2.0
//
// Several locks at once: all or nothing, beside those who want one of them alone.
#include <atomic>
#include <future>
#include <thread>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class MultiContract : public Contract {};
DLOCK_CONTRACT(MultiContract);
class MultiCrashContract : public Contract {};
DLOCK_CONTRACT_OF_PROCESSES(MultiCrashContract);

TEST_P(MultiContract, TwoAndThreeAreTakenAndGivenBack) {
  auto manager = open();
  for (const auto& names : {std::vector<std::string>{"b", "a"}, {"c", "a", "b"}}) {
    auto held = manager.lock_all(names)->acquire({.wait = 30s});
    EXPECT_EQ(held.state(), HandleState::held);
    const bool has_tokens = capabilities().token != TokenStrength::none;
    EXPECT_EQ(held.sequencers().size(), has_tokens ? names.size() : 0);
    EXPECT_EQ(held.remaining().has_value(), capabilities().lease_scope != LeaseScope::none);
    for (const auto& name : names) {
      EXPECT_TRUE(observer().status(name).held) << name;
      EXPECT_FALSE(open().lock(name)->try_acquire()) << name;
    }
    EXPECT_FALSE(held.release());
    for (const auto& name : names) EXPECT_TRUE(becomes_free(name)) << name;
  }
}

TEST_P(MultiContract, ATryGivesBackWhatItGot) {
  const auto other = peer("b");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  EXPECT_FALSE(manager.lock_all({"a", "b", "c"})->try_acquire());
  EXPECT_TRUE(becomes_free("a"));
  EXPECT_FALSE(observer().status("c").held);
  other->release();
  EXPECT_TRUE(manager.lock_all({"a", "b", "c"})->acquire({.wait = 30s}));
}

TEST_P(MultiContract, WaitsForWhoHasOneOfThemAndKeepsTheOthersMeanwhile) {
  const auto other = peer("b");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  auto waiter = std::async(std::launch::async, [&] {
    return manager.lock_all({"a", "b"})->acquire({.wait = 60s});
  });
  ASSERT_TRUE(waiters_become("b", 1));
  EXPECT_TRUE(observer().status("a").held);
  other->release();
  auto held = waiter.get();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_P(MultiContract, AWaitEndsInTimeAndLeavesNothing) {
  const auto other = peer("b");
  ASSERT_TRUE(other->wait_held(patience()));
  auto manager = open();
  manager.connect();
  const auto started = testkit::Clock::now();
  const auto ec = error_of([&] {
    std::ignore = manager.lock_all({"a", "b"})->acquire({.wait = 300ms});
  });
  const auto waited = testkit::Clock::now() - started;
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
  EXPECT_GE(waited, 300ms);
  EXPECT_LT(waited, 30s);
  EXPECT_TRUE(waiters_become("b", 0));
  EXPECT_TRUE(becomes_free("a"));
}

// Atomic, since managers meet in the store only: ThreadSanitizer does not see that they do.
TEST_P(MultiContract, ThoseWhoWantSeveralExcludeEachOtherAndThoseWhoWantOne) {
  constexpr int kRounds = 15;
  std::atomic<long> a = 0;
  std::atomic<long> b = 0;
  const auto add_one = [](std::atomic<long>& number) {
    const long read = number.load();
    std::this_thread::yield();
    number.store(read + 1);
  };
  std::vector<std::thread> threads;
  for (const auto& names : {std::vector<std::string>{"a", "b"}, {"b", "a"}, {"a"}, {"b"}}) {
    threads.emplace_back([&, names] {
      auto manager = open();
      const auto all = manager.lock_all(names);
      for (int i = 0; i < kRounds; ++i) {
        auto held = all->acquire({.wait = 120s});
        for (const auto& name : names) add_one(name == "a" ? a : b);
        EXPECT_FALSE(held.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(a, 3 * kRounds);
  EXPECT_EQ(b, 3 * kRounds);
}

TEST_P(MultiContract, ItIsLostWhenOneIsAndTheOthersAreKeptUntilTheRelease) {
  auto manager = open();
  auto held = manager.lock_all({"a", "b"})->acquire({.wait = 30s});
  std::promise<void> told;
  std::atomic<int> times = 0;
  held.on_state([&](HandleState state, LossReason) {
    if (state == HandleState::lost && times++ == 0) told.set_value();
  });
  const auto stop = held.stop_token();
  harness().take_away(observer(), url(), "b");
  ASSERT_EQ(told.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_TRUE(observer().status("a").held);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(becomes_free("a"));
  EXPECT_EQ(times, 1);
}

TEST_P(MultiCrashContract, AKilledHolderOfOneFreesItForWhoWaitsForAll) {
  const auto holder = process_peer("b");
  ASSERT_TRUE(holder->wait_held(patience()));
  auto manager = open();
  auto waiter = std::async(std::launch::async, [&] {
    return manager.lock_all({"a", "b"})->acquire();
  });
  ASSERT_TRUE(waiters_become("b", 1));
  holder->process().kill_and_wait();
  const auto died = testkit::Clock::now();
  const auto held = waiter.get();
  EXPECT_LT(testkit::Clock::now() - died, harness().dead_holder_bound() + 2s);
  EXPECT_EQ(held.state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::contract
