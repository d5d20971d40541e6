// SPDX-License-Identifier: Apache-2.0
#include "dlock/detail/recycled.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace dlock::detail
