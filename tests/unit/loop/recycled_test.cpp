// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/loop/memory_poison.hpp"

namespace dlock::detail {
namespace {

TEST(Recycled, NoBlockIsInUseTwice) {
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

TEST(Recycled, AFreeBlockIsReused) {
  auto* const first = take_memory(100);
  give_memory(first, 100);
  auto* const other = take_memory(400);
  auto* const again = take_memory(120);
  EXPECT_NE(other, first);
  EXPECT_EQ(again, first) << "a block for 97 to 128 bytes";
  give_memory(other, 400);
  give_memory(again, 120);
}

TEST(Recycled, AThreadKeepsNoMoreThanTheBound) {
  constexpr std::size_t kSize = 4000;
  std::vector<void*> taken(2 * kMostRecycled / kSize);
  for (auto*& memory : taken) memory = take_memory(kSize);
  const auto before = kept_memory();
  for (auto* const memory : taken) give_memory(memory, kSize);
  EXPECT_GT(kept_memory(), before);
  EXPECT_LE(kept_memory(), kMostRecycled);
}

TEST(Recycled, AnotherThreadMayFreeABlockAtItsEnd) {
  struct AtTheEnd {
    std::shared_ptr<std::vector<int>> kept;
  };
  auto made = make_recycled<std::vector<int>>(100, 7);
  std::thread([made = std::move(made)]() mutable {
    // Constructed before the first use of recycled memory in this thread: it is destroyed after it.
    static thread_local AtTheEnd at_the_end;
    give_memory(take_memory(40), 40);
    at_the_end.kept = std::move(made);
    EXPECT_EQ(at_the_end.kept->back(), 7);
  }).join();
}

TEST(Recycled, BlocksMoveFromOneThreadToAnother) {
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

#ifdef DLOCK_ADDRESS_SANITIZER
TEST(RecycledDeathTest, AUseAfterFreeIsReported) {
  for (const std::size_t at : {std::size_t{8}, std::size_t{99}}) {
    EXPECT_DEATH(
        {
          auto* const memory = static_cast<volatile char*>(take_memory(100));
          give_memory(const_cast<char*>(memory), 100);
          memory[at] = 1;
        },
        "use-after-poison");
  }
}
#endif

}  // namespace
}  // namespace dlock::detail
