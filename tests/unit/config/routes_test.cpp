// SPDX-License-Identifier: Apache-2.0
#include "core/config/routes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::core {
namespace {

TEST(Routes, PatternsMatchNames) {
  struct Row {
    const char* pattern;
    const char* name;
    bool matches;
  };
  const Row table[] = {
      {"**", "a", true},
      {"**", "a/b/c", true},
      {"*", "a", true},
      {"*", "a/b", false},
      {"a", "a", true},
      {"a", "b", false},
      {"billing/**", "billing/2024/05", true},
      {"billing/**", "billing", true},
      {"billing/**", "billings/x", false},
      {"billing/*", "billing/x", true},
      {"billing/*", "billing/x/y", false},
      {"billing/*", "billing", false},
      {"**/leader", "leader", true},
      {"**/leader", "a/b/leader", true},
      {"**/leader", "a/leader/b", false},
      {"a/**/z", "a/z", true},
      {"a/**/z", "a/b/c/z", true},
      {"a/**/z", "a/b/c", false},
      {"**/m/**", "x/m/y/m/z", true},
      {"**/m/**", "x/y", false},
      {"order-*-eu", "order-42-eu", true},
      {"order-*-eu", "order--eu", true},
      {"order-*-eu", "order-42-us", false},
      {"*a*b*", "xxaxxbxx", true},
      {"*a*b*", "xxbxxaxx", false},
      {"**/**", "a", true},
  };
  for (const auto& [pattern, name, matches] : table) {
    EXPECT_EQ(pattern_matches(pattern, name), matches) << pattern << " on " << name;
  }
}

// Exponential on a naive matcher; here it must simply end.
TEST(Routes, HostilePatternsAreCheap) {
  std::string pattern;
  std::string name;
  for (int i = 0; i < 100; ++i) {
    pattern += "**/a/";
    name += "a/";
  }
  pattern += "b";
  name += "c";
  EXPECT_FALSE(pattern_matches(pattern, name));
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  EXPECT_FALSE(pattern_matches(stars + "b", std::string(500, 'a')));
}

TEST(Routes, AStarTakesOneByteAfterTheOther) {
  for (const std::string text : {"b", "ab", "aab", "aaab", "aaaab"}) {
    EXPECT_TRUE(pattern_matches("*b", text)) << text;
    EXPECT_TRUE(pattern_matches("**/b", "x/" + text + "/b")) << text;
  }
  EXPECT_TRUE(pattern_matches("**/b", "b"));
  EXPECT_TRUE(pattern_matches("**/b", "a/b"));
  EXPECT_TRUE(pattern_matches("**/b", "a/a/b"));
}

TEST(Routes, PatternsMeetWhereOneNameFitsBoth) {
  const auto meet = [](std::string_view one, std::string_view other) {
    const bool there = patterns_meet(one, other);
    EXPECT_EQ(there, patterns_meet(other, one)) << one << " and " << other;
    return there;
  };
  EXPECT_TRUE(meet("a/**", "a"));
  EXPECT_TRUE(meet("a/**/b", "a/b"));
  EXPECT_TRUE(meet("a/**", "a/b/c"));
  EXPECT_TRUE(meet("a/*/**", "a/*"));
  EXPECT_TRUE(meet("a/b*", "a/*c"));
  EXPECT_TRUE(meet("a/b", "a/b*"));
  EXPECT_TRUE(meet("**/x", "y/**"));
  EXPECT_FALSE(meet("a/*/**", "a"));
  EXPECT_FALSE(meet("a/*", "a/b/c"));
  EXPECT_FALSE(meet("a/b*", "a/c*"));
  EXPECT_FALSE(meet("a/**", "b/**"));
}

TEST(Routes, FirstMatchWins) {
  const auto route = [](const char* match, const char* store) {
    RouteConfig config;
    config.match = match;
    config.store = store;
    return config;
  };
  const Routes routes({route("a/**", "first"), route("a/b", "second"), route("c", "third")});
  EXPECT_EQ(routes.find("a/b")->store, "first");
  EXPECT_EQ(routes.find("c")->store, "third");
  EXPECT_EQ(routes.find("d"), nullptr);
}

TEST(Routes, ComplainsAboutWhatIsNoPattern) {
  EXPECT_EQ(pattern_error("a/*/**"), "");
  EXPECT_NE(pattern_error("a**"), "");
  EXPECT_NE(pattern_error("***"), "");
  EXPECT_NE(pattern_error("/a"), "");
  EXPECT_NE(pattern_error(""), "");
  EXPECT_NE(pattern_error("a//b"), "");
}

TEST(Routes, KnowsWhatIsNeverReached) {
  EXPECT_TRUE(pattern_covers("**", "a/*"));
  EXPECT_TRUE(pattern_covers("a/**", "a/b/*"));
  EXPECT_TRUE(pattern_covers("a/**", "a/**"));
  EXPECT_TRUE(pattern_covers("a/**", "a"));
  EXPECT_TRUE(pattern_covers("a/*", "a/b"));
  EXPECT_FALSE(pattern_covers("a/**", "**"));
  EXPECT_FALSE(pattern_covers("a/*/c/**", "a/*")) << "it is shorter";
  EXPECT_TRUE(pattern_covers("a/*/**", "a/*")) << "by the part that stands for none";
  EXPECT_FALSE(pattern_covers("a/b/**", "a/**"));
  EXPECT_FALSE(pattern_covers("a/*", "a/**"));
  EXPECT_FALSE(pattern_covers("a", "b"));
}

}  // namespace
}  // namespace dlock::core
