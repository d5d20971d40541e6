// SPDX-License-Identifier: Apache-2.0
//
// Bounded use: a lock that is held too long, whose holder hangs, or that too many wait for.
#include <csignal>

#include "dlock/mutex.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

std::string with(const std::string& url, const std::string& setting) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + setting;
}

bool is_lost(const LockHandle& handle) { return handle.state() == HandleState::lost; }

class BoundsContract : public Contract {
 protected:
  LockManager open_with(const std::string& setting) const {
    return LockManager::open(with(url(), setting), open_options());
  }
  bool counts() {
    if (capabilities().can_bound_queue) return true;
    auto manager = open();
    const auto wait_for_nobody = [&] {
      const auto held = manager.lock("a")->acquire({.wait = 1s, .max_queue = 1});
    };
    EXPECT_EQ(error_of(wait_for_nobody), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { open_with("max_queue=1"); }), errc::config_invalid);
    return false;
  }
};
DLOCK_CONTRACT(BoundsContract);

class BoundsOfProcesses : public Contract {};
DLOCK_CONTRACT_OF_PROCESSES(BoundsOfProcesses);

TEST_P(BoundsContract, MaxHoldIsTheEndAndTheNextOneWaitsForWhoWorks) {
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s, .max_hold = 300ms});
  const auto stop = held.stop_token();
  ASSERT_TRUE(held.remaining());
  EXPECT_LE(*held.remaining(), 300ms);
  const auto other = peer("a");
  ASSERT_TRUE(eventually(patience(), [&] { return stop.stop_requested(); }));
  EXPECT_EQ(held.loss_reason(), LossReason::max_hold);
  EXPECT_FALSE(other->is_held());
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(other->wait_held(patience()));
}

TEST_P(BoundsContract, WhoMakesProgressKeepsItAndWhoHangsLosesIt) {
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s, .progress_every = 400ms});
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + 900ms) {
    held.progress();
    held.check();
  }
  ASSERT_TRUE(eventually(patience(), [&] { return is_lost(held); }));
  EXPECT_EQ(held.loss_reason(), LossReason::no_progress);
  const auto other = peer("a");  // nobody listens: it is given back at once
  EXPECT_TRUE(other->wait_held(patience()));
}

TEST_P(BoundsContract, TheConfigurationBoundsMutexesToo) {
  auto manager = open_with("max_hold=300ms");
  Mutex mutex(manager.lock("a"));
  mutex.lock();
  mutex.lock();  // entered again, it counts from the first
  ASSERT_TRUE(eventually(patience(), [&] { return is_lost(*mutex.held()); }));
  EXPECT_EQ(mutex.held()->loss_reason(), LossReason::max_hold);
  error_code ec;
  mutex.unlock(ec);
  mutex.unlock(ec);
  EXPECT_EQ(ec, errc::lock_lost);
}

TEST_P(BoundsContract, OfALockThatStaysEachHolderHasHisOwnTime) {
  if (!capabilities().can_tell_contention) return;  // else there is no such lock
  auto manager = open_with("cache=1h&max_hold=600ms");
  const auto lock = manager.lock("a");
  auto first = lock->acquire({.wait = 60s});
  const auto token = first.token();
  ASSERT_TRUE(eventually(patience(), [&] { return *first.remaining() < 500ms; }));
  const auto left = *first.remaining();
  EXPECT_FALSE(first.release());
  auto second = lock->acquire({.wait = 60s});
  EXPECT_EQ(second.token(), token);
  EXPECT_GT(*second.remaining(), left);
  ASSERT_TRUE(eventually(patience(), [&] { return is_lost(second); }));
  EXPECT_EQ(second.loss_reason(), LossReason::max_hold);
  EXPECT_EQ(second.release(), errc::lock_lost);
  const auto third = lock->acquire({.wait = 60s});
  EXPECT_GT(third.token(), token);
}

TEST_P(BoundsContract, OfSeveralLocksTheFirstEndCounts) {
  auto manager = open();
  auto held = manager.lock_all({"a", "b"})
                  ->acquire({.wait = 60s, .max_hold = 60s, .progress_every = 400ms});
  held.progress();
  EXPECT_EQ(held.state(), HandleState::held);
  ASSERT_TRUE(eventually(patience(), [&] { return is_lost(held); }));
  EXPECT_EQ(held.loss_reason(), LossReason::no_progress);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(becomes_free("a"));
  EXPECT_TRUE(becomes_free("b"));
}

TEST_P(BoundsContract, LimitsThatAreNoneAreRefused) {
  auto manager = open();
  const auto lock = manager.lock("a");
  EXPECT_EQ(error_of([&] { const auto held = lock->acquire({.max_hold = 0ms}); }),
            errc::invalid_argument);
  EXPECT_EQ(error_of([&] { const auto held = lock->acquire({.progress_every = -1ms}); }),
            errc::invalid_argument);
  EXPECT_EQ(error_of([&] { open_with("max_hold=0"); }), errc::config_invalid);
}

TEST_P(BoundsContract, AQueueThatIsFullIsToldAtOnce) {
  if (!counts()) return;
  auto manager = open();
  const auto lock = manager.lock("a");
  auto held = lock->acquire({.wait = 60s, .max_queue = 0});
  EXPECT_EQ(held.state(), HandleState::held);
  const auto first = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  auto other = open();
  Diagnostics why;
  error_code ec;
  const auto none = other.lock("a")->acquire({.diagnostics = &why, .max_queue = 1}, {}, ec);
  EXPECT_EQ(ec, errc::queue_full);
  EXPECT_NE(why.server_text.find("max_queue is 1"), std::string::npos) << why.server_text;
  EXPECT_TRUE(waiters_become("a", 1));
  EXPECT_EQ(error_of([&] {
              const auto late = other.lock("a")->acquire({.wait = 200ms, .max_queue = 2});
            }),
            errc::timed_out);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(first->wait_held(patience()));
}

// Told before anybody else has it, also if the process slept through its end.
TEST_P(BoundsOfProcesses, G03_WhoWasStoppedBeyondMaxHoldIsToldBeforeAnybodyElseHasIt) {
  ProcessPeer holder(with(url(), "max_hold=500ms"), "a");
  ASSERT_TRUE(holder.wait_held(patience()));
  ASSERT_EQ(::kill(holder.process().pid(), SIGSTOP), 0);
  const auto other = peer("a");
  EXPECT_FALSE(other->wait_held(within(700ms)));
  ASSERT_EQ(::kill(holder.process().pid(), SIGCONT), 0);
  EXPECT_EQ(holder.wait_lost(patience()), "max_hold");
  EXPECT_TRUE(other->wait_held(patience()));
}

}  // namespace
}  // namespace dlock::contract
