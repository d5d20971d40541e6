// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/loop/magazine_depot.hpp"

namespace dlock::detail {
namespace {

TEST(Recycled, NoTwoHaveTheSameMemory) {
  struct Taken {
    void* memory;
    std::size_t size;
  };
  std::vector<Taken> all;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 1; size < 6000; size += 97) {
      all.push_back({take_memory(size), size});
      std::memset(all.back().memory, static_cast<int>(size % 251), size);
    }
    for (const auto& [memory, size] : all) {
      const auto* const bytes = static_cast<const unsigned char*>(memory);
      EXPECT_EQ(bytes[0], size % 251);
      EXPECT_EQ(bytes[size - 1], size % 251);
    }
    for (const auto& [memory, size] : all) give_memory(memory, size);
    all.clear();
  }
}

TEST(Recycled, MayBeGivenBackByAnotherThreadAndAtItsEnd) {
  struct AtTheEnd {
    std::shared_ptr<std::vector<int>> kept;
  };
  auto made = make_recycled<std::vector<int>>(100, 7);
  std::thread([made = std::move(made)]() mutable {
    // Before the first use of recycled memory here, so that it ends after it.
    static thread_local AtTheEnd at_the_end;
    give_memory(take_memory(40), 40);
    at_the_end.kept = std::move(made);
    EXPECT_EQ(at_the_end.kept->back(), 7);
  }).join();
}

/// Of one class, full; gives its memory back at the end.
class Magazine {
 public:
  explicit Magazine(std::size_t of_class)
      : memory_(std::make_unique<std::byte[]>(magazine_bytes(of_class))) {
    for (std::size_t i = 0; i < kMagazineSizes[of_class]; ++i) {
      first_ = new (memory_.get() + i * of_class * kBlockStep) FreeBlock{first_, nullptr};
    }
  }
  FreeBlock* first() const { return first_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  FreeBlock* first_ = nullptr;
};

std::size_t blocks_in(const FreeBlock* first) {
  std::size_t count = 0;
  for (; first != nullptr; first = first->next) ++count;
  return count;
}

TEST(MagazineDepot, AMagazineIsTwoKiBAndOneBlockAtLeast) {
  EXPECT_EQ(kMagazineSizes[1], 16) << "of 32 bytes";
  EXPECT_EQ(kMagazineSizes[8], 8) << "of 256";
  EXPECT_EQ(kMagazineSizes[127], 1) << "of 4,064";
}

TEST(MagazineDepot, GivesWhatAnotherHasLeftOfTheSameSize) {
  MagazineDepot depot(1 << 20);
  const Magazine small(1);
  const Magazine other(1);
  const Magazine large(40);
  ASSERT_TRUE(depot.give(small.first(), 1));
  ASSERT_TRUE(depot.give(large.first(), 40));
  ASSERT_TRUE(depot.give(other.first(), 1));
  EXPECT_EQ(depot.take(2), nullptr) << "nobody has left any";
  EXPECT_EQ(depot.take(40), large.first());
  EXPECT_EQ(depot.take(40), nullptr);
  const auto* const last = depot.take(1);
  EXPECT_EQ(last, other.first()) << "the one that was used last";
  EXPECT_EQ(blocks_in(last), kMagazineSizes[1]);
  EXPECT_EQ(depot.take(1), small.first());
  EXPECT_EQ(depot.take(1), nullptr);
}

TEST(MagazineDepot, KeepsNoMoreThanItMay) {
  MagazineDepot depot(magazine_bytes(3) + magazine_bytes(1));
  const Magazine first(3);
  const Magazine second(3);
  const Magazine small(1);
  ASSERT_TRUE(depot.give(first.first(), 3));
  EXPECT_FALSE(depot.give(second.first(), 3));
  EXPECT_TRUE(depot.give(small.first(), 1));
  EXPECT_EQ(depot.take(3), first.first());
  EXPECT_TRUE(depot.give(second.first(), 3)) << "there is room again";
}

TEST(MagazineDepot, ManyThreadsExchangeAndNothingIsLost) {
  MagazineDepot depot(1 << 20);
  constexpr std::size_t kClass = 4;
  std::vector<Magazine> all;
  for (int i = 0; i < 8; ++i) all.emplace_back(kClass);
  std::atomic<std::size_t> kept_out{0};
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (const auto& mine : all) {
    threads.emplace_back([&depot, &kept_out, has = mine.first()]() mutable {
      for (int round = 0; round < 20'000; ++round) {
        if (has == nullptr) {
          has = depot.take(kClass);
        } else if (depot.give(has, kClass)) {
          has = nullptr;
        }
      }
      if (has != nullptr) ++kept_out;
    });
  }
  for (auto& thread : threads) thread.join();
  std::size_t left = 0;
  while (const auto* const magazine = depot.take(kClass)) {
    EXPECT_EQ(blocks_in(magazine), kMagazineSizes[kClass]);
    ++left;
  }
  EXPECT_EQ(left + kept_out, all.size());
}

// Two threads that pass memory on in one direction only, and none of it is twice in use.
TEST(Recycled, FlowsFromOneThreadToAnother) {
  constexpr std::size_t kBlocks = 1000;
  constexpr std::size_t kSize = 300;
  std::vector<void*> made(kBlocks);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      made[i] = take_memory(kSize);
      std::memset(made[i], static_cast<int>(i % 251), kSize);
    }
    std::thread([&made] {
      for (std::size_t i = 0; i < kBlocks; ++i) {
        EXPECT_EQ(static_cast<unsigned char*>(made[i])[kSize - 1], i % 251);
        give_memory(made[i], kSize);
      }
    }).join();
  }
}

// A thread may be at a shelf in that moment, and is not there in the child to leave it.
TEST(MagazineDepot, AForkedChildNeverWaitsForAThreadOfItsParent) {
  static MagazineDepot depot(1 << 20);
  constexpr std::size_t kClass = 4;
  const Magazine only(kClass);
  std::atomic<bool> stop{false};
  std::thread busy([&stop, has = only.first()]() mutable {
    while (!stop) {
      if (depot.give(has, kClass)) has = depot.take(kClass);
    }
  });
  for (int child = 0; child < 50; ++child) {
    const auto pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::alarm(20);  // it would wait for ever
      if (auto* const taken = depot.take(kClass)) depot.give(taken, kClass);
      const Magazine mine(kClass);
      depot.give(mine.first(), kClass);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    if (!WIFEXITED(status)) break;
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace dlock::detail
