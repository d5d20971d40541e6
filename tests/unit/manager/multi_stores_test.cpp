// SPDX-License-Identifier: Apache-2.0
//
// One MultiLock over stores of two kinds: files and memory.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "dlock/distributed_lock.hpp"
#include "dlock/local.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;

OpenOptions both_backends() {
  OpenOptions options;
  options.backends = {&local::backend(), &memory::backend()};
  return options;
}

TEST(MultiStores, LocksOnFilesAndInMemoryOfOneConfiguration) {
  const testkit::TempDir folder("dlock-multi");
  const auto yaml = "stores:\n  disk: { url: \"file://" + folder.path().string() +
                    "\" }\n  ram: { url: \"memory://multi-stores\" }\n"
                    "locks:\n  - { match: \"disk/**\", store: disk }\n"
                    "  - { match: \"**\", store: ram }\n";
  auto locks = LockManager::from_config(Config::from_yaml(yaml, "test.yaml"), both_backends());
  const auto all = locks.lock_all({"x", "disk/1"});
  EXPECT_EQ(all->store(), "disk, ram");
  auto held = all->acquire({.wait = 30s});
  EXPECT_EQ(held.name(), "disk/1 // x");
  EXPECT_EQ(held.store(), "disk, ram");
  ASSERT_EQ(held.sequencers().size(), 2U);
  EXPECT_EQ(held.sequencers()[0].store(), "disk");
  EXPECT_EQ(held.sequencers()[1].store(), "ram");
  EXPECT_EQ(locks.check(held.sequencers()[0]).standing, Standing::current);
  EXPECT_FALSE(locks.lock("x")->try_acquire());
  EXPECT_FALSE(locks.lock("disk/1")->try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(locks.lock("x")->try_acquire());
  EXPECT_TRUE(locks.lock("disk/1")->try_acquire());
}

TEST(MultiStores, TwoManagersOfEachInOppositeOrders) {
  constexpr int kRounds = 100;
  const testkit::TempDir folder("dlock-multi");
  const auto on_disk = "file://" + folder.path().string();
  std::atomic<long> number = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      auto disk = LockManager::open(on_disk, both_backends());
      auto ram = LockManager::open("memory://multi-two", both_backends());
      const auto a = disk.lock("a");
      const auto b = ram.lock("b");
      MultiLock both(t == 0 ? std::vector{a, b} : std::vector{b, a});
      for (int i = 0; i < kRounds; ++i) {
        auto held = both.acquire({.wait = 60s});
        const long read = number;
        std::this_thread::yield();
        number = read + 1;
        ASSERT_FALSE(held.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 2 * kRounds);
}

}  // namespace
}  // namespace dlock::tests
