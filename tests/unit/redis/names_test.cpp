// SPDX-License-Identifier: Apache-2.0
//
// Names to keys and back: injective, in one slot, and the same as other programs' keys by template.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/redis/rules/names.hpp"

namespace dlock::redis {
namespace {

TEST(RedisNames, Keys) {
  const struct {
    const char* key_template;
    const char* name;
    const char* key;
    const char* fence;
  } table[] = {
      {"dlock:{{name}}", "orders/42", "dlock:{orders/42}", "dlock:{orders/42}%fence"},
      {"dlock:{{name}}", "a}b{c", "dlock:{a%7Db%7Bc}", "dlock:{a%7Db%7Bc}%fence"},
      {"dlock:{{name}}", "100%", "dlock:{100%25}", "dlock:{100%25}%fence"},
      {"dlock:{{name}}", "a b*?[x]", "dlock:{a b*?[x]}", "dlock:{a b*?[x]}%fence"},
      {"{name}", "orders/42", "orders/42", "{orders/42}%fence"},
      {"redlock:{name}", "x", "redlock:x", "{redlock:x}%fence"},
      {"_tooz_{name}_lock", "x", "_tooz_x_lock", "{_tooz_x_lock}%fence"},
      {"{app}:{name}", "x", "{app}:x", "{app}:x%fence"},
  };
  for (const auto& row : table) {
    const KeyMap map(row.key_template);
    const auto keys = map.keys(row.name);
    EXPECT_EQ(keys.lock, row.key);
    EXPECT_EQ(keys.fence, row.fence);
    EXPECT_EQ(map.base(row.name).lock(), row.key);
    EXPECT_EQ(map.base(row.name).text + std::string(kFenceKey), row.fence);
    EXPECT_EQ(map.name(row.key), row.name);
    EXPECT_FALSE(map.name(row.fence)) << row.fence;
  }
}

/// Redis' rule: what stands between the first { and the first } after it, if anything.
std::string slot_text(const std::string& key) {
  const auto open = key.find('{');
  const auto close = open == std::string::npos ? open : key.find('}', open);
  if (close == std::string::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

TEST(RedisNames, AllKeysOfALockAreInOneSlotAndNoTwoMeet) {
  for (const char* key_template :
       {"dlock:{{name}}", "{name}", "{app}:{name}", "x{name}y", "fence{{name}}", "{name}%"}) {
    if (!template_error(key_template).empty()) continue;
    const KeyMap map(key_template);
    std::set<std::string> all;
    std::size_t count = 0;
    for (const char* name : {"a", "b", "a/b", "a%fence", "a}%fence", "{a}%fence", "a%25fence", "a%",
                             "%fence", "{a", "a}", "fence", "a%7D", "{app}:a", "ay"}) {
      const auto keys = map.keys(name);
      for (const auto& key :
           {keys.lock, keys.fence, keys.queue, keys.alive, keys.next, keys.broken}) {
        all.insert(key);
        ++count;
        EXPECT_EQ(slot_text(key), slot_text(keys.lock)) << key_template << ' ' << key;
      }
      EXPECT_EQ(map.name(keys.lock), name) << key_template;
    }
    EXPECT_EQ(all.size(), count) << key_template;
  }
}

TEST(RedisNames, Templates) {
  for (const char* good :
       {"{name}", "dlock:{{name}}", "{app}:{name}", "a{name}", "{name}b", "a*/{name}"}) {
    EXPECT_EQ(template_error(good), "") << good;
  }
  for (const char* bad : {"", "locks", "*", "{name}{name}", "a{{name}", "{name}}", "{}{name}",
                          "}{name}{", "{a}{{name}}", "%{name}", "a\n{name}"}) {
    EXPECT_NE(template_error(bad), "") << bad;
  }
}

TEST(RedisNames, OtherKeysAreNoLocks) {
  const KeyMap map("dlock:{{name}}");
  for (const char* key : {"dlock:{a}%queue", "dlock:{a", "dlock:{}", "other", "dlock:{a%7d}",
                          "dlock:{a%41}", "dlock:{a//b}", "dlock:{a{b}"}) {
    EXPECT_FALSE(map.name(key)) << key;
  }
}

TEST(RedisNames, TheKeyOfASelfTestDiffersFromEveryLocks) {
  const std::string id = "0a1b2c3d-0000-4000-8000-000000000000";
  for (const char* text : {"dlock:{{name}}", "x:{name}", "{name}", "{t}:{name}"}) {
    const KeyMap map(text);
    const auto base = map.self_test_base(id);
    EXPECT_FALSE(map.name(base.lock())) << base.lock();
    EXPECT_FALSE(map.name_beside(base.text + std::string(kFenceKey), kFenceKey)) << base.text;
  }
  EXPECT_EQ(KeyMap("dlock:{{name}}").self_test_base("id").lock(), "dlock:{%self-test-id}");
}

TEST(RedisNames, ALockIsKnownByAKeyBesideIt) {
  for (const char* text : {"dlock:{{name}}", "x:{name}", "{{name}}:y", "{t}:{name}"}) {
    const KeyMap map(text);
    const auto keys = map.keys("a/{b}%");
    EXPECT_EQ(map.name_beside(keys.queue, "%queue"), "a/{b}%") << text;
    EXPECT_EQ(map.name_beside(keys.fence, "%queue"), std::nullopt) << text;
    EXPECT_EQ(map.name_beside(keys.lock, "%queue"), std::nullopt) << text;
  }
}

TEST(RedisNames, PatternsAreLiteralOutsideTheirStar) {
  EXPECT_EQ(KeyMap("dlock:{{name}}").pattern(""), "dlock:{*}");
  EXPECT_EQ(KeyMap("dlock:{{name}}").pattern("a[1]?"), "dlock:{a\\[1\\]\\?*}");
  EXPECT_EQ(KeyMap("x?{name}").pattern("{"), "x\\?%7B*");
  EXPECT_EQ(KeyMap("dlock:{{name}}").pattern_beside("a", "%queue"), "dlock:{a*}%queue");
  EXPECT_EQ(KeyMap("x:{name}").pattern_beside("a", "%queue"), "{x:a*}%queue");
}

}  // namespace
}  // namespace dlock::redis
