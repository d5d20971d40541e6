// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers that wait for each other: in which order, for how long, and what is left of
// who gives up or dies.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SharedQueueContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    if (!HasFatalFailure() && !capabilities().shared_mode) GTEST_SKIP() << "it has no shared mode";
  }
};
DLOCK_CONTRACT(SharedQueueContract);

constexpr AcquireOptions kToRead{.wait = 60s, .mode = Mode::shared};

TEST_P(SharedQueueContract, ReadersAndWritersAreServedInTheOrderOfTheirArrival) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  const std::vector<Mode> modes = {Mode::shared, Mode::exclusive, Mode::shared, Mode::shared};
  std::vector<std::unique_ptr<Peer>> peers;
  for (const auto mode : modes) {
    peers.push_back(peer("a", mode));
    ASSERT_TRUE(waiters_become("a", peers.size()));
  }
  EXPECT_FALSE(held.release());
  ASSERT_TRUE(peers[0]->wait_held(patience()));
  EXPECT_TRUE(waiters_become("a", 3)) << "readers do not pass the writer";
  peers[0]->release();
  ASSERT_TRUE(peers[1]->wait_held(patience()));
  EXPECT_FALSE(peers[2]->is_held());
  EXPECT_FALSE(peers[3]->is_held());
  peers[1]->release();
  EXPECT_TRUE(peers[2]->wait_held(patience()));
  EXPECT_TRUE(peers[3]->wait_held(patience()));
  peers[2]->release();
  peers[3]->release();
  EXPECT_TRUE(becomes_free("a"));
}

// Each holds it for a moment and comes again at once, so that it is never free by itself; the first
// time until many are in, whatever the machine.
TEST_P(SharedQueueContract, G18_AWriterIsNotStarvedByFiftyReadersThatOverlap) {
  constexpr int kReaders = 50;
  auto readers = open();
  std::atomic<bool> crowded = false;
  std::atomic<bool> done = false;
  std::atomic<int> reading = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&] {
      const auto lock = readers.lock("a");
      while (!done) {
        auto held = lock->acquire(kToRead);
        ++reading;
        do std::this_thread::sleep_for(20ms);  // the work
        while (!crowded);
        --reading;
        EXPECT_FALSE(held.release());
      }
    });
  }
  EXPECT_TRUE(eventually(patience(), [&] { return reading > kReaders / 2; }));
  crowded = true;
  auto writers = open();
  for (int i = 0; i < 3; ++i) {
    error_code ec;
    auto held = writers.lock("a")->acquire({.wait = 30s}, {}, ec);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_EQ(reading, 0) << "a writer is alone";
    if (held) {
      EXPECT_FALSE(held.release());
    }
  }
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedQueueContract, G18_BehindAWriterAllReadersComeInTogether) {
  constexpr std::size_t kReaders = 50;
  auto manager = open();
  auto writer = manager.lock("a")->acquire();
  auto readers = open();
  std::atomic<std::size_t> reading = 0;
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kReaders; ++i) {
    threads.emplace_back([&] {
      auto held = readers.lock("a")->acquire(kToRead);
      ++reading;
      go.wait(false);
      EXPECT_FALSE(held.release());
    });
  }
  EXPECT_TRUE(waiters_become("a", kReaders));
  EXPECT_FALSE(writer.release());
  const auto released = testkit::Clock::now();
  // None of them leaves before all are in: one after the other they would never be.
  EXPECT_TRUE(eventually(patience(), [&] { return reading == kReaders; }));
  EXPECT_LT(testkit::Clock::now() - released, 10s);
  EXPECT_EQ(observer().status("a").readers.size(), kReaders);
  go = true;
  go.notify_all();
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(SharedQueueContract, WhoGivesUpInTheQueueLeavesNothingAndLetsReadersPass) {
  auto manager = open();
  auto held = manager.lock("a")->acquire(kToRead);
  std::stop_source stop;
  auto cancelled = std::async(std::launch::async, [&] {
    error_code ec;
    auto other = open();
    EXPECT_FALSE(other.lock("a")->acquire({.wait = 60s}, stop.get_token(), ec));
    return ec;
  });
  ASSERT_TRUE(waiters_become("a", 1));
  const auto near = peer("a", Mode::shared);
  ASSERT_TRUE(waiters_become("a", 2));
  auto far = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(kToRead); });
  ASSERT_TRUE(waiters_become("a", 3));
  stop.request_stop();
  EXPECT_EQ(cancelled.get(), errc::cancelled);
  EXPECT_TRUE(near->wait_held(patience())) << "the writer is gone, and only readers are before it";
  auto third = far.get();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(manager.lock("a")->try_acquire({.wait = 100ms}));
  EXPECT_FALSE(third.release());
  near->release();
  EXPECT_FALSE(held.release());
  auto writer = manager.lock("a")->acquire({.wait = 30s});
  EXPECT_FALSE(manager.lock("a")->try_acquire({.wait = 100ms, .mode = Mode::shared}));
  EXPECT_FALSE(writer.release());
  EXPECT_TRUE(becomes_free("a"));
}

// What one has counted, all others see: each write is alone, each read sees a whole one.
TEST_P(SharedQueueContract, ManyReadersAndWritersOfTwoManagersNeverMeet) {
  std::atomic<int> readers_in = 0;
  std::atomic<int> writers_in = 0;
  std::atomic<int> together = 0;
  std::vector<std::thread> threads;
  auto first = open();
  auto second = open();
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto lock = (t % 2 == 0 ? first : second).lock("a");
      for (int i = 0; i < 25; ++i) {
        const bool writes = (t + i) % 4 == 0;
        if (writes) {
          auto held = lock->acquire({.wait = 60s});
          EXPECT_EQ(++writers_in, 1);
          EXPECT_EQ(readers_in, 0);
          std::this_thread::yield();
          if (i % 3 == 0) {
            --writers_in;
            ++readers_in;
            EXPECT_FALSE(held.downgrade());
            EXPECT_EQ(writers_in, 0);
            --readers_in;
          } else {
            --writers_in;
          }
          EXPECT_FALSE(held.release());
        } else {
          auto held = lock->acquire(kToRead);
          if (++readers_in > 1) ++together;
          EXPECT_EQ(writers_in, 0);
          std::this_thread::yield();
          --readers_in;
          EXPECT_FALSE(held.release());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(becomes_free("a"));
}

class SharedCrashContract : public SharedQueueContract {};
DLOCK_CONTRACT_OF_PROCESSES(SharedCrashContract);

TEST_P(SharedCrashContract, ADeadReaderBlocksNobodyForLongerThanItsLease) {
  const auto dead = process_peer("a", Mode::shared);
  ASSERT_TRUE(dead->wait_held(patience()));
  const auto alive = process_peer("a", Mode::shared);
  ASSERT_TRUE(alive->wait_held(patience()));
  auto manager = open();
  auto writer =
      std::async(std::launch::async, [&] { return manager.lock("a")->acquire({.wait = 60s}); });
  ASSERT_TRUE(waiters_become("a", 1));
  alive->release();
  dead->process().kill_and_wait();
  const auto died = testkit::Clock::now();
  const auto held = writer.get();
  EXPECT_LT(testkit::Clock::now() - died, harness().dead_holder_bound() + 2s);
  EXPECT_EQ(held.state(), HandleState::held);
}

/// Signals that silence a process. A stopped one keeps its place where a place has no lease.
std::vector<int> silencing_signals(const Capabilities& of) {
  if (of.lease_scope == LeaseScope::none) return {SIGKILL};
  return {SIGKILL, SIGSTOP};
}

TEST_P(SharedCrashContract, ASilentWriterInTheQueueLetsReadersPass) {
  auto manager = open();
  for (const int silence : silencing_signals(capabilities())) {
    auto held = manager.lock("a")->acquire(kToRead);
    const auto silent = process_peer("a");
    ASSERT_TRUE(waiters_become("a", 1));
    const auto reader = process_peer("a", Mode::shared);
    ASSERT_TRUE(waiters_become("a", 2));
    silent->process().signal(silence);
    EXPECT_TRUE(reader->wait_held(within(harness().dead_waiter_bound())));
    EXPECT_EQ(held.state(), HandleState::held);
    reader->release();
    silent->process().kill_and_wait();
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(becomes_free("a"));
  }
}

}  // namespace
}  // namespace dlock::contract
