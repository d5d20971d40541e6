// SPDX-License-Identifier: Apache-2.0
//
// Permits of a semaphore: never more than there are, all of them back when their holders have
// ended, one number for all who use it. A store that does not declare them has to refuse them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SemaphoreContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const bool refused = std::string_view(test->name()).starts_with("AStoreWithout");
    if (!HasFatalFailure() && capabilities().permits == refused) {
      GTEST_SKIP() << (refused ? "it has semaphores" : "it has no semaphores");
    }
  }

  SemaphoreStatus status() { return observer().semaphore_status("s"); }
  /// Soon.
  bool free_becomes(std::uint64_t count) {
    return eventually(patience() + harness().dead_holder_bound(),
                      [&] { return status().free() == count; });
  }
  bool permit_waiters_become(std::size_t count) {
    return eventually(patience(), [&] { return status().waiting.size() == count; });
  }
};
DLOCK_CONTRACT(SemaphoreContract);

constexpr AcquireOptions kPatient{.wait = 30s};
constexpr auto kSlowMachine = 700ms;

TEST_P(SemaphoreContract, AStoreWithoutSemaphoresRefusesThemAndSaysWhy) {
  auto manager = open();
  for (const std::function<void()>& call :
       {std::function<void()>([&] { static_cast<void>(manager.semaphore("s", 3)); }),
        std::function<void()>([&] { static_cast<void>(manager.semaphore_status("s")); }),
        std::function<void()>([&] { manager.set_semaphore("s", 3); })}) {
    try {
      call();
      ADD_FAILURE() << "it was not refused";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::invalid_argument);
      EXPECT_NE(error.server_text().find("has no semaphores: "), std::string::npos)
          << error.server_text();
      EXPECT_NE(error.server_text().find("require: semaphore"), std::string::npos);
    }
  }
  auto config = Config::from_url(url());
  config.stores.at(0).set({"require", "semaphore", {}});
  auto strict = LockManager::from_config(std::move(config), open_options());
  EXPECT_EQ(error_of([&] { strict.connect(); }), errc::config_unsafe);
}

TEST_P(SemaphoreContract, NeverMoreThanThereAreAndAllOfThemBack) {
  auto manager = open();
  const auto slots = manager.semaphore("s", 3);
  EXPECT_EQ(slots.limit(), 3U);
  auto one = slots.acquire();
  EXPECT_EQ(one.permits(), 1U);
  EXPECT_EQ(one.name(), "s");
  EXPECT_EQ(one.mode(), Mode::shared);
  EXPECT_FALSE(one.sequencer());
  EXPECT_TRUE(one.sequencers().empty());
  const auto other = permits_peer("s", 2, 3);
  ASSERT_TRUE(other->wait_held(patience()));
  EXPECT_EQ(status().free(), 0U);
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_FALSE(slots.try_acquire_for(10ms, 2));
  EXPECT_FALSE(one.release());
  EXPECT_EQ(status().free(), 1U);
  EXPECT_FALSE(slots.try_acquire(2)) << "one is free";
  EXPECT_TRUE(slots.try_acquire());
  other->release();
  ASSERT_TRUE(free_becomes(3));
  auto all = slots.try_acquire(3);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->permits(), 3U);
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_FALSE(all->release());
  EXPECT_TRUE(free_becomes(3));
}

TEST_P(SemaphoreContract, StatusNamesWhoHasHowManyAndWhoWaits) {
  auto manager = open();
  EXPECT_FALSE(status().limit) << "nobody has used it";
  const auto slots = manager.semaphore("s", 5);
  auto two = slots.acquire(2);
  auto one = slots.acquire(1);
  const auto waiter = permits_peer("s", 4, 5);
  ASSERT_TRUE(permit_waiters_become(1));
  const auto now = status();
  EXPECT_EQ(now.name, "s");
  EXPECT_EQ(now.limit, 5U);
  ASSERT_EQ(now.holders.size(), 2U);
  EXPECT_EQ(now.holders[0].permits, 2U);
  EXPECT_EQ(now.holders[1].permits, 1U);
  EXPECT_EQ(now.holders[0].token, two.token());
  EXPECT_EQ(now.holders[1].token, one.token());
  EXPECT_EQ(now.holders[0].owner.pid, ::getpid());
  EXPECT_NE(now.holders[0].owner.id, now.holders[1].owner.id);
  EXPECT_EQ(now.held(), 3U);
  EXPECT_EQ(now.free(), 2U);
  EXPECT_EQ(now.waiting[0].permits, 4U);
  EXPECT_EQ(now.waiting[0].owner.pid != ::getpid(), harness().has_processes());
  for (const auto& holder : now.holders) {
    EXPECT_LT(holder.held_for.value_or(0ms), 10min);
    EXPECT_EQ(holder.remaining.has_value(), capabilities().lease_scope != LeaseScope::none);
  }
  EXPECT_FALSE(two.release());
  ASSERT_TRUE(waiter->wait_held(patience()));
  waiter->release();
}

TEST_P(SemaphoreContract, WhoAsksForManyIsNotPassedByThoseWhoAskForOne) {
  if (!capabilities().fair) GTEST_SKIP() << "it has no order";
  auto manager = open();
  const auto slots = manager.semaphore("s", 3);
  auto held = slots.acquire(1);
  const auto big = permits_peer("s", 3, 3);
  ASSERT_TRUE(permit_waiters_become(1));
  EXPECT_FALSE(slots.try_acquire()) << "two are free, and somebody waits before";
  const auto small = permits_peer("s", 1, 3);
  ASSERT_TRUE(permit_waiters_become(2));
  EXPECT_FALSE(held.release());
  ASSERT_TRUE(big->wait_held(patience()));
  EXPECT_FALSE(small->is_held());
  big->release();
  ASSERT_TRUE(small->wait_held(patience()));
  small->release();
  EXPECT_TRUE(free_becomes(3));
}

TEST_P(SemaphoreContract, WhoGivesUpLetsThoseBehindHimIn) {
  auto manager = open();
  const auto slots = manager.semaphore("s", 3);
  auto held = slots.acquire(1);
  auto big = permits_peer("s", 3, 3);
  ASSERT_TRUE(permit_waiters_become(1));
  const auto small = permits_peer("s", 2, 3);
  if (capabilities().fair) {
    ASSERT_TRUE(permit_waiters_become(2));
  }
  big->release();
  ASSERT_TRUE(small->wait_held(patience()));
  small->release();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(free_becomes(3));
}

TEST_P(SemaphoreContract, AnotherLimitIsRefusedAndBothAreNamed) {
  auto manager = open();
  auto held = manager.semaphore("s", 3).acquire();
  Diagnostics why;
  error_code ec;
  AcquireOptions options = kPatient;
  options.diagnostics = &why;
  EXPECT_FALSE(manager.semaphore("s", 4).permits()->acquire(options, {}, ec));
  EXPECT_EQ(ec, errc::invalid_argument) << ec.message();
  EXPECT_NE(why.server_text.find("has 3 permits in the store, and 4 were said here"),
            std::string::npos)
      << why.server_text;
  EXPECT_NE(why.server_text.find("dlock semaphore set s 4"), std::string::npos);
  EXPECT_TRUE(manager.semaphore("s").try_acquire(2)) << "as many as the store says";
  EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("s").acquire(4)); }),
            errc::invalid_argument)
      << "it would wait for ever";
  EXPECT_EQ(status().held(), 1U);
  EXPECT_EQ(status().limit, 3U);
  EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("new").acquire()); }),
            errc::invalid_argument);
  for (const std::uint32_t wrong : {0U, kMostPermits + 1}) {
    EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("s", wrong)); }),
              errc::invalid_argument);
    EXPECT_EQ(error_of([&] { manager.set_semaphore("s", wrong); }), errc::invalid_argument);
  }
  for (const std::uint32_t wrong : {0U, 4U}) {
    EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("s", 3).permits(wrong)); }),
              errc::invalid_argument);
  }
}

TEST_P(SemaphoreContract, TheLimitIsChangedWhileInUseAndNobodyLosesAny) {
  auto manager = open();
  manager.set_semaphore("s", 2);
  EXPECT_EQ(status().limit, 2U);
  auto one = manager.semaphore("s", 2).acquire();
  auto two = manager.semaphore("s").acquire();
  auto waiter = std::async(std::launch::async,
                           [&] { return manager.semaphore("s").acquire(1, {.wait = 60s}); });
  ASSERT_TRUE(permit_waiters_become(1));
  manager.set_semaphore("s", 3);
  auto three = waiter.get();
  EXPECT_EQ(status().free(), 0U);
  manager.set_semaphore("s", 1);
  EXPECT_EQ(status().limit, 1U);
  EXPECT_EQ(status().held(), 3U);
  EXPECT_EQ(one.state(), HandleState::held);
  EXPECT_EQ(two.state(), HandleState::held);
  EXPECT_FALSE(one.release());
  EXPECT_FALSE(manager.semaphore("s").try_acquire()) << "two are held of one";
  EXPECT_FALSE(two.release());
  EXPECT_FALSE(manager.semaphore("s").try_acquire());
  EXPECT_FALSE(three.release());
  EXPECT_TRUE(manager.semaphore("s").try_acquire());
  EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("s", 3).acquire()); }),
            errc::invalid_argument);
}

TEST_P(SemaphoreContract, WhoWaitsWithAnotherLimitInMindIsTold) {
  auto manager = open();
  auto held = manager.semaphore("s", 1).acquire();
  auto waiter = std::async(std::launch::async, [&] {
    return error_of(
        [&] { static_cast<void>(manager.semaphore("s", 1).acquire(1, {.wait = 60s})); });
  });
  ASSERT_TRUE(permit_waiters_become(1));
  manager.set_semaphore("s", 2);
  EXPECT_EQ(waiter.get(), errc::invalid_argument);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_TRUE(manager.semaphore("s", 2).try_acquire());
}

TEST_P(SemaphoreContract, AWaiterBehindOthersIsNotifiedOfAnotherLimitWithinASecond) {
  auto manager = open();
  auto held = manager.semaphore("s", 3).acquire(3);
  auto first = std::async(std::launch::async,
                          [&] { return manager.semaphore("s").acquire(3, {.wait = 60s}); });
  ASSERT_TRUE(permit_waiters_become(1));
  const auto refused = [&](std::uint32_t limit) {
    return error_of(
        [&] { static_cast<void>(manager.semaphore("s", limit).acquire(1, {.wait = 60s})); });
  };
  auto began = testkit::Clock::now();
  EXPECT_EQ(refused(2), errc::invalid_argument);
  EXPECT_LT(testkit::Clock::now() - began, 1s + kSlowMachine) << "when it comes";
  auto second = std::async(std::launch::async, [&] { return refused(3); });
  ASSERT_TRUE(permit_waiters_become(2));
  began = testkit::Clock::now();
  manager.set_semaphore("s", 4);  // too few permits are free for the first one
  EXPECT_EQ(second.get(), errc::invalid_argument);
  EXPECT_LT(testkit::Clock::now() - began, 1s + kSlowMachine) << "when it changes";
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(first.get().state(), HandleState::held) << "it accepts any limit";
}

TEST_P(SemaphoreContract, ALockOfTheSameNameIsAnotherThing) {
  auto manager = open();
  auto lock = manager.lock("s")->acquire();
  auto permits = manager.semaphore("s", 1).acquire(1, kPatient);
  EXPECT_FALSE(manager.lock("s")->try_acquire());
  EXPECT_FALSE(manager.semaphore("s", 1).try_acquire());
  EXPECT_EQ(observer().status("s").token, lock.token());
  EXPECT_FALSE(lock.release());
  EXPECT_FALSE(manager.semaphore("s", 1).try_acquire());
  EXPECT_TRUE(manager.lock("s")->try_acquire());
  EXPECT_FALSE(permits.release());
  if (capabilities().can_list) {
    EXPECT_TRUE(observer().list().empty());
  }
}

TEST_P(SemaphoreContract, G38_AReleaseGivesBackWhatItsOwnAcquisitionTookAndOnce) {
  auto manager = open();
  const auto slots = manager.semaphore("s", 3);
  for (int round = 0; round < 20; ++round) {
    auto two = slots.acquire(2);
    auto one = slots.acquire(1);
    EXPECT_FALSE(two.release());
    EXPECT_FALSE(two.release()) << "an empty handle";
    EXPECT_EQ(status().free(), 2U);
    EXPECT_FALSE(one.release());
  }
  EXPECT_EQ(status().free(), 3U);
  EXPECT_EQ(status().limit, 3U);
  EXPECT_TRUE(status().holders.empty());
}

TEST_P(SemaphoreContract, G35_WhatWasCancelledLeavesNothing) {
  auto manager = open();
  const auto slots = manager.semaphore("s", 2);
  auto held = slots.acquire(1);
  for (int round = 0; round < 30; ++round) {
    std::stop_source stop;
    auto waiter = std::async(std::launch::async, [&] {
      error_code ec;
      auto got = slots.permits(2)->acquire(kPatient, stop.get_token(), ec);
      return got ? errc::timed_out : static_cast<errc>(ec.value());
    });
    if (round % 3 == 0) {
      EXPECT_TRUE(permit_waiters_become(1));
    }
    stop.request_stop();
    EXPECT_EQ(waiter.get(), errc::cancelled);
  }
  EXPECT_TRUE(permit_waiters_become(0));
  EXPECT_TRUE(free_becomes(1));
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(slots.try_acquire(2));
}

TEST_P(SemaphoreContract, ManyAtOnceNeverHaveMoreThanThereAre) {
  auto manager = open();
  constexpr std::uint32_t kLimit = 4;
  std::atomic<std::uint32_t> in_use = 0;
  std::atomic<std::uint32_t> most = 0;
  std::vector<std::jthread> threads;
  for (std::uint32_t number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      const auto slots = manager.semaphore("s", kLimit);
      const std::uint32_t count = number % 3 + 1;
      for (int round = 0; round < 10; ++round) {
        auto held = slots.acquire(count, {.wait = 120s});
        const auto now = in_use += count;
        auto seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        in_use -= count;
      }
    });
  }
  threads.clear();
  EXPECT_LE(most, kLimit);
  EXPECT_GE(most, 2U);
  EXPECT_TRUE(free_becomes(kLimit));
}

/// A store that polls has its own interval.
constexpr auto kSoon = 50ms;

testkit::Clock::duration median(std::vector<testkit::Clock::duration> took) {
  std::sort(took.begin(), took.end());
  return took[took.size() / 2];
}

TEST_P(SemaphoreContract, AReleasedPermitReachesAWaiterOfTheSameManagerSoon) {
  if (capabilities().wake_up == WakeUp::poll) GTEST_SKIP() << "it polls";
  auto manager = open();
  const auto slots = manager.semaphore("s", 1);
  std::vector<testkit::Clock::duration> took;
  auto held = slots.acquire();
  for (int i = 0; i < 10; ++i) {
    auto waiter = std::async(std::launch::async, [&] { return slots.acquire(1, {.wait = 60s}); });
    ASSERT_TRUE(permit_waiters_become(1));
    const auto released = testkit::Clock::now();
    EXPECT_FALSE(held.release());
    held = waiter.get();
    took.push_back(testkit::Clock::now() - released);
  }
  EXPECT_LT(median(took), kSoon);
}

TEST_P(SemaphoreContract, AReleasedPermitReachesAnotherManagerSoon) {
  if (capabilities().wake_up == WakeUp::poll) GTEST_SKIP() << "it polls";
  std::vector<LockManager> managers;
  for (int i = 0; i < 2; ++i) managers.push_back(open());
  std::vector<testkit::Clock::duration> took;
  auto held = managers[0].semaphore("s", 1).acquire();
  for (std::size_t i = 1; i <= 10; ++i) {
    const auto slots = managers[i % 2].semaphore("s", 1);
    auto waiter = std::async(std::launch::async, [&] { return slots.acquire(1, {.wait = 60s}); });
    ASSERT_TRUE(permit_waiters_become(1));
    const auto released = testkit::Clock::now();
    EXPECT_FALSE(held.release());
    held = waiter.get();
    took.push_back(testkit::Clock::now() - released);
  }
  EXPECT_LT(median(took), kSoon);
}

TEST_P(SemaphoreContract, CloseGivesPermitsBack) {
  auto manager = open();
  auto held = manager.semaphore("s", 2).acquire(2);
  manager.close();
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_TRUE(free_becomes(2));
  EXPECT_EQ(error_of([&] { static_cast<void>(manager.semaphore("s", 2).acquire()); }),
            errc::closed);
}

TEST_P(SemaphoreContract, RequireSemaphoreIsMet) {
  auto config = Config::from_url(url());
  config.stores.at(0).set({"require", "semaphore", {}});
  auto manager = LockManager::from_config(std::move(config), open_options());
  EXPECT_TRUE(manager.semaphore("s", 1).try_acquire());
}

/// With processes that die.
class SemaphoreCrashContract : public SemaphoreContract {};
DLOCK_CONTRACT_OF_PROCESSES(SemaphoreCrashContract);

TEST_P(SemaphoreCrashContract, G04_PermitsOfDeadOwnersComeBackAndNoMore) {
  std::vector<std::unique_ptr<ProcessPeer>> owners;
  for (int i = 0; i < 5; ++i) {
    owners.push_back(std::make_unique<ProcessPeer>(url(), "s", PeerKind{Mode::exclusive, 1, 5}));
  }
  for (const auto& owner : owners) ASSERT_TRUE(owner->wait_held(patience()));
  EXPECT_EQ(status().free(), 0U);
  for (const auto& owner : owners) owner->process().signal(SIGKILL);
  auto manager = open();
  auto all = manager.semaphore("s", 5).acquire(5, {.wait = 120s});
  EXPECT_EQ(status().held(), 5U);
  EXPECT_FALSE(all.release());
  EXPECT_EQ(status().free(), 5U);
}

TEST_P(SemaphoreCrashContract, G04_SilentWaitersBlockNobodyBehindThem) {
  constexpr int kSilent = 3;
  auto manager = open();
  const auto slots = manager.semaphore("s", 2);
  const bool has_lease = capabilities().lease_scope != LeaseScope::none;
  for (const int silence : has_lease ? std::vector{SIGKILL, SIGSTOP} : std::vector{SIGKILL}) {
    auto held = slots.acquire(1);
    std::vector<std::unique_ptr<ProcessPeer>> waiters;
    for (int i = 1; i <= kSilent; ++i) {
      waiters.push_back(std::make_unique<ProcessPeer>(url(), "s", PeerKind{Mode::exclusive, 2, 2}));
      ASSERT_TRUE(permit_waiters_become(i));
    }
    const auto began = testkit::Clock::now();
    for (const auto& waiter : waiters) waiter->process().signal(silence);
    auto free = slots.acquire(1, {.wait = 120s});
    EXPECT_LT(testkit::Clock::now() - began, harness().dead_waiter_bound()) << "a free permit";

    waiters.push_back(std::make_unique<ProcessPeer>(url(), "s", PeerKind{Mode::exclusive, 1, 2}));
    ASSERT_TRUE(permit_waiters_become(1));
    waiters.back()->process().signal(silence);
    const auto released = testkit::Clock::now();
    EXPECT_FALSE(held.release());
    held = slots.acquire(1, {.wait = 120s});
    EXPECT_LT(testkit::Clock::now() - released, harness().dead_waiter_bound()) << "a released one";
    for (const auto& waiter : waiters) waiter->process().kill_and_wait();
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(free.release());
    EXPECT_TRUE(free_becomes(2));
  }
}

TEST_P(SemaphoreCrashContract, AStoppedHolderSaysLostBeforeItsPermitsAreAnothers) {
  if (capabilities().lease_scope == LeaseScope::none) GTEST_SKIP() << "it has no lease";
  ProcessPeer holder(url(), "s", PeerKind{Mode::exclusive, 2, 2});
  ASSERT_TRUE(holder.wait_held(patience()));
  holder.process().signal(SIGSTOP);
  auto manager = open();
  auto next = manager.semaphore("s", 2).acquire(2, {.wait = 120s});
  holder.process().signal(SIGCONT);
  EXPECT_TRUE(holder.wait_lost(patience()));
  const auto ended = holder.process().wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, kPeerStatusLost);
  EXPECT_EQ(next.state(), HandleState::held) << "its release is of its own acquisition";
  EXPECT_EQ(status().held(), 2U);
}

}  // namespace
}  // namespace dlock::contract
