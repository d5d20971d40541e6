// SPDX-License-Identifier: Apache-2.0
//
// `sections:` of a configuration: what is read, and every complaint with its place and remedy.
#include "core/config/sections.hpp"

#include <gtest/gtest.h>

#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/options.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;

Config read_with_sections(const std::string& sections) {
  return Config::from_yaml("stores: { a: \"memory://a\" }\nsections:\n" + sections, "dlock.yaml");
}

std::string refusal_of(const std::string& sections) {
  try {
    read_with_sections(sections);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return "(none)";
}

TEST(Sections, AreReadAsTheyAreWritten) {
  const auto all = read_with_sections(R"(
  shop::report: {}
  stock.view: { type: read, lock: stock, wait: 2s }
  stock.sell: { type: write, lock: stock, wait: forever }
  import: { type: semaphore, limit: 4, permits: 2, wait: 0s }
  till: { type: semaphore_mutex }
  transfer: { type: multi, locks: [accounts/7, accounts/3] }
)")
                       .sections;
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].name, "shop::report");
  EXPECT_EQ(all[0].section.type, LockType::mutex);
  EXPECT_FALSE(all[0].section.wait);
  EXPECT_EQ(all[1].section.type, LockType::read);
  EXPECT_EQ(all[1].section.lock, "stock");
  EXPECT_EQ(all[1].section.wait, 2s);
  EXPECT_EQ(all[1].origin.text(), "dlock.yaml:5:3");
  EXPECT_EQ(all[2].section.type, LockType::write);
  EXPECT_EQ(all[2].section.wait, kWaitForever);
  EXPECT_EQ(all[3].section.type, LockType::semaphore);
  EXPECT_EQ(all[3].section.limit, 4U);
  EXPECT_EQ(all[3].section.permits, 2U);
  EXPECT_EQ(all[3].section.wait, 0s);
  EXPECT_EQ(all[4].section.type, LockType::semaphore);
  EXPECT_EQ(all[4].section.limit, 1U);
  EXPECT_EQ(all[5].section.type, LockType::multi);
  EXPECT_EQ(all[5].section.locks, (std::vector<std::string>{"accounts/7", "accounts/3"}));
}

TEST(Sections, StandBesideTheStartersBlockAndWhatIsNotOurs) {
  const auto config = Config::from_yaml(
      "server: { port: 8080 }\nzk-lock: { address: h }\nsections: { a: { type: read } }",
      "app.yml");
  ASSERT_EQ(config.sections.size(), 1U);
  EXPECT_EQ(config.sections[0].section.type, LockType::read);
}

TEST(Sections, WhatIsWrongHasItsPlaceAndRemedy) {
  const std::pair<const char*, const char*> table[] = {
      {"  a: { type: reed }",
       "dlock.yaml:3:8: type: 'reed' is no type of lock; did you mean 'read'"},
      {"  a: { typ: read }", "did you mean 'type'"},
      {"  a: 5", "section 'a': a mapping is expected here"},
      {"  - a", "sections: a mapping is expected here"},
      {"  a: {}\n  a: {}", "'a' is written twice"},
      {"  a//b: {}", "sections: 'a//b'"},
      {"  a: { lock: x//y }", "lock: 'x//y'"},
      {"  a: { lock: [x, y] }", "lock: one value is expected here"},
      {"  a: { locks: [x, y] }",
       "dlock.yaml:3:3: section 'a': `locks` are of type multi; type mutex has one: write `lock`"},
      {"  a: { type: multi }", "type multi needs `locks`; write for example locks: [a, b]"},
      {"  a: { type: multi, lock: x }", "type multi has several: write `locks`"},
      {"  a: { type: multi, locks: x }", "locks: a list is expected here"},
      {"  a: { type: multi, locks: [] }", "type multi needs `locks`"},
      {"  a: { type: multi, locks: [x, y, x] }", "locks: 'x' is there twice; keep one"},
      {"  a: { type: multi, locks: [x, y//z] }", "locks: 'y//z'"},
      {"  a: { type: read, limit: 3 }",
       "`limit` and `permits` are of type semaphore; leave them out, or write it instead of read"},
      {"  a: { permits: 1 }", "`limit` and `permits` are of type semaphore"},
      {"  a: { type: semaphore, limit: 0 }", "limit: 0: a semaphore has 1 to 1000000 permits"},
      {"  a: { type: semaphore, limit: many }", "limit: 'many': write a number from 1 to 1000000"},
      {"  a: { type: semaphore, limit: 2, permits: 3 }", "permits: 3: write 1 to 2"},
      {"  a: { type: semaphore, permits: 0 }", "permits: 0: write 1 to 1000000"},
      {"  a: { type: semaphore_mutex, limit: 2 }", "type semaphore_mutex has one permit"},
      {"  a: { wait: 5 }", "dlock.yaml:3:8: wait: '5'"},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_NE(refusal_of(text).find(expected), std::string::npos) << text << "\n"
                                                                  << refusal_of(text);
  }
}

TEST(Sections, ASemaphoreHasUpToAMillionPermits) {
  const auto refusal = [](std::optional<std::uint32_t> limit,
                          std::optional<std::uint32_t> permits) {
    return section_error(
        {.type = LockType::semaphore, .lock = "a", .limit = limit, .permits = permits});
  };
  EXPECT_EQ(refusal(1, 1), "");
  EXPECT_EQ(refusal(1'000'000, 1'000'000), "");
  EXPECT_EQ(refusal({}, 1'000'000), "");
  EXPECT_EQ(refusal(1'000'001, 1), "limit: 1000001: a semaphore has 1 to 1000000 permits");
  EXPECT_EQ(refusal({}, 1'000'001), "permits: 1000001: write 1 to 1000000");
  EXPECT_EQ(refusal(1, 2), "permits: 2: write 1 to 1");
}

TEST(Sections, OfAProgramAreJudgedByTheSameRules) {
  EXPECT_EQ(section_error({}), "");
  EXPECT_EQ(section_error({.type = LockType::semaphore, .lock = "a"}), "") << "as the store says";
  EXPECT_NE(section_error({.lock = "a", .wait = -1ms}), "");
  EXPECT_NE(section_error({.type = static_cast<LockType>(99)}), "");
  EXPECT_NE(section_error({.type = LockType::multi, .lock = "a"}), "");
}

}  // namespace
}  // namespace dlock::core
