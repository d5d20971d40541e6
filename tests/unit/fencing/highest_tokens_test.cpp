// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/highest_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace dlock::core {
namespace {

TEST(HighestTokens, ForgetTheLowestWhenAnotherNameComes) {
  HighestTokens tokens(2);
  tokens.raise("a", 7);
  tokens.raise("b", 5);
  tokens.raise("a", 6);
  EXPECT_EQ(tokens.find("a"), 7U) << "a lower one changes nothing";
  EXPECT_EQ(tokens.floor(), 0U);
  tokens.raise("c", 9);
  EXPECT_FALSE(tokens.find("b"));
  EXPECT_EQ(tokens.floor(), 5U);
  EXPECT_EQ(tokens.size(), 2U);
}

TEST(HighestTokens, AReaderIsComparedWithWritersOnly) {
  HighestTokens tokens(2);
  tokens.raise("a", 7, Mode::shared);
  EXPECT_EQ(tokens.find("a", Mode::shared), 0U);
  EXPECT_EQ(tokens.find("a"), 7U);
  tokens.raise("a", 5, Mode::exclusive);
  EXPECT_EQ(tokens.find("a", Mode::shared), 5U);
}

TEST(HighestTokens, AreThoseOfAPlainSearch) {
  constexpr std::size_t kMost = 20;
  HighestTokens tokens(kMost);
  std::map<std::string, std::uint64_t> beside;
  std::uint64_t floor = 0;
  std::mt19937 random(1);
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const auto name = std::to_string(random() % 30);
    const auto token = step + 1 + random() % 100 * 100;
    tokens.raise(name, token);
    auto& highest = beside[name];
    highest = std::max(highest, token);
    if (beside.size() > kMost) {
      const auto lowest = std::min_element(beside.begin(), beside.end(), [](auto& a, auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
      });
      floor = std::max(floor, lowest->second);
      beside.erase(lowest);
    }
    ASSERT_EQ(tokens.floor(), floor);
    ASSERT_EQ(tokens.size(), beside.size());
    const auto found = beside.find(name);
    ASSERT_EQ(tokens.find(name).value_or(0), found == beside.end() ? 0 : found->second);
  }
}

}  // namespace
}  // namespace dlock::core
