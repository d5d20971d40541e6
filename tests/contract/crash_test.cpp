// SPDX-License-Identifier: Apache-2.0
//
// Processes that die. Only on stores that other processes reach.
#include <csignal>
#include <future>

#include "testkit/temp_dir.hpp"
#include "tests/contract/contract.hpp"
#include "tests/contract/peer.hpp"

namespace dlock::contract {
namespace {

class CrashContract : public Contract {};
DLOCK_CONTRACT_OF_PROCESSES(CrashContract);

TEST_P(CrashContract, F63_AKilledHolderFreesTheLockInTime) {
  const auto holder = process_peer("a");
  const auto token = holder->wait_held(patience());
  ASSERT_TRUE(token);
  auto manager = open();
  auto waiter = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(); });
  ASSERT_TRUE(waiters_become("a", 1));
  holder->process().kill_and_wait();
  const auto died = testkit::Clock::now();
  const auto held = waiter.get();
  // Two seconds for a busy machine.
  EXPECT_LT(testkit::Clock::now() - died, harness().dead_holder_bound() + 2s);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_GT(held.token().value_or(*token + 1), *token);
}

TEST_P(CrashContract, AKilledWaiterBlocksNobody) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  const auto killed = process_peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  const auto last = process_peer("a");
  ASSERT_TRUE(waiters_become("a", 2));
  killed->process().kill_and_wait();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(last->wait_held(within(harness().dead_holder_bound() + 10s)));
  last->release();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(CrashContract, F50_DeadWaitersDoNotStallTheQueue) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  std::vector<std::unique_ptr<ProcessPeer>> waiters;
  for (std::size_t i = 0; i < 7; ++i) {
    waiters.push_back(process_peer("a"));
    ASSERT_TRUE(waiters_become("a", i + 1));
  }
  for (std::size_t i = 0; i < 5; ++i) waiters[i]->process().signal(SIGKILL);
  EXPECT_FALSE(held.release());
  if (!capabilities().fair) {  // either of the two who live
    EXPECT_TRUE(eventually(within(harness().dead_holder_bound() + 10s),
                           [&] { return waiters[5]->is_held() || waiters[6]->is_held(); }));
    return;
  }
  EXPECT_TRUE(waiters[5]->wait_held(within(harness().dead_holder_bound() + 10s)))
      << "one bound for all of them, not one each";
}

TEST_P(CrashContract, ATerminatedHolderGivesTheLockBackAtOnce) {
  const auto holder = process_peer("a");
  ASSERT_TRUE(holder->wait_held(patience()));
  holder->process().signal(SIGTERM);
  ASSERT_TRUE(holder->process().wait(patience()));
  EXPECT_FALSE(observer().status("a").held);
}

TEST_P(CrashContract, F01_AStoppedHolderOnAStoreWithALeaseSaysLostFirst) {
  const auto holder = process_peer("a");
  const auto token = holder->wait_held(patience());
  ASSERT_TRUE(token);
  ASSERT_TRUE(holder->process().pause());
  auto manager = open();
  if (capabilities().lease_scope == LeaseScope::none) {
    manager.connect();
    EXPECT_FALSE(manager.lock("a")->try_acquire({.wait = 500ms})) << "it keeps the lock";
    EXPECT_TRUE(holder->process().resume());
    holder->release();
    return;
  }
  auto next = manager.lock("a")->acquire({.wait = 60s});
  EXPECT_TRUE(holder->process().resume());
  const auto line = holder->process().read_line(patience());
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->starts_with(kPeerLost)) << *line;
  const auto status = holder->process().wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), kPeerStatusLost);
  EXPECT_EQ(next.state(), HandleState::held) << "the next owner is left alone";
  if (next.token()) {
    // What it writes now, it writes in vain.
    const testkit::TempDir folder;
    FencedRegister guarded((folder / "state").string());
    guarded.write(*next.token(), "of the next owner");
    error_code ec;
    guarded.write(*token, "late", ec);
    EXPECT_EQ(ec, errc::stale_token) << ec.message();
  }
  EXPECT_FALSE(next.release());
}

TEST_P(CrashContract, AProcessThatDiesWhileManyWaitFreesOneAfterTheOther) {
  auto holder = process_peer("a");
  ASSERT_TRUE(holder->wait_held(patience()));
  auto manager = open();
  std::vector<std::future<std::uint64_t>> waiters;
  for (int i = 0; i < 10; ++i) {
    waiters.push_back(std::async(std::launch::async, [&] {
      auto held = manager.lock("a")->acquire();
      return held.token().value_or(0);
    }));
  }
  ASSERT_TRUE(waiters_become("a", waiters.size()));
  holder->process().kill_and_wait();
  for (auto& waiter : waiters) waiter.get();
  EXPECT_TRUE(becomes_free("a"));
}

}  // namespace
}  // namespace dlock::contract
