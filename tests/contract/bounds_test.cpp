// SPDX-License-Identifier: Apache-2.0
//
// Bounded use: a lock that is held too long, whose holder hangs, or that too many wait for.
#include <csignal>
#include <future>
#include <list>
#include <map>
#include <mutex>

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

class HeadStartContract : public Contract {
 protected:
  /// Waits for "a" on a manager of its own, and says when it has it.
  std::future<std::uint64_t> wait_with(std::chrono::milliseconds head_start) {
    managers_.push_back(open());
    return std::async(std::launch::async, [this, &from = managers_.back(), head_start] {
      auto held = from.lock("a")->acquire({.wait = 120s, .head_start = head_start});
      const std::lock_guard lock(mutex_);
      order_.push_back(head_start);
      return held.token().value();
    });
  }
  bool passes() {
    if (capabilities().can_head_start) return true;
    auto manager = open();
    const auto lock = manager.lock("a");
    EXPECT_EQ(error_of([&] { const auto held = lock->acquire({.wait = 1s, .head_start = 1s}); }),
              errc::invalid_argument);
    EXPECT_TRUE(lock->try_acquire({.head_start = 1s})) << "it does not wait";
    return false;
  }

  std::list<LockManager> managers_;
  std::mutex mutex_;
  std::vector<std::chrono::milliseconds> order_;  ///< by what they asked for
};
DLOCK_CONTRACT(HeadStartContract);

TEST_P(HeadStartContract, PassesWhoCameInThatTimeAndNobodyElse) {
  if (!passes()) return;
  using List = std::vector<std::chrono::milliseconds>;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  auto token = held.token().value();
  std::vector<std::future<std::uint64_t>> waiters;
  const auto wait_for_one_more = [&](std::chrono::milliseconds head_start) {
    waiters.push_back(wait_with(head_start));
    return waiters_become("a", waiters.size());
  };
  ASSERT_TRUE(wait_for_one_more(0ms));
  ASSERT_TRUE(wait_for_one_more(1h));
  ASSERT_TRUE(wait_for_one_more(24h));
  ASSERT_TRUE(wait_for_one_more(12h));
  ASSERT_TRUE(wait_for_one_more(1ms));  // the first has waited for longer than that
  EXPECT_FALSE(held.release());
  std::map<std::uint64_t, std::size_t> by_token;
  for (std::size_t i = 0; i < waiters.size(); ++i) by_token[waiters[i].get()] = i;
  EXPECT_EQ(order_, (List{24h, 12h, 1h, 0ms, 1ms}));
  std::vector<std::size_t> served;
  for (const auto& [given, who] : by_token) {
    EXPECT_GT(given, std::exchange(token, given)) << "tokens rise as they are served";
    served.push_back(who);
  }
  EXPECT_EQ(served, (std::vector<std::size_t>{2, 3, 1, 0, 4}));
}

TEST_P(HeadStartContract, IsOfOneDayAtMostAndOfExclusiveLocks) {
  if (!passes()) return;
  auto manager = open();
  const auto refused = [&](const AcquireOptions& options) {
    Diagnostics why;
    auto with = options;
    with.diagnostics = &why;
    error_code ec;
    EXPECT_FALSE(manager.lock("a")->acquire(with, {}, ec));
    EXPECT_EQ(ec, errc::invalid_argument);
    return why.server_text;
  };
  EXPECT_EQ(
      refused({.wait = 1s, .head_start = -1ms}),
      "head_start: -1 ms would let others pass; it is 0 or more, and who may wait longer sets "
      "none");
  EXPECT_EQ(refused({.wait = 1s, .head_start = 24h + 1ms}),
            "head_start: 86400001 ms is more than a day; write 24h or less");
  if (!capabilities().shared_mode) return;
  EXPECT_EQ(refused({.wait = 1s, .mode = Mode::shared, .head_start = 5ms}),
            "head_start: 5 ms is of exclusive locks only; leave it out");
}

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
