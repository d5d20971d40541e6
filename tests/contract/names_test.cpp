// SPDX-License-Identifier: Apache-2.0
//
// The same names everywhere: accepted and kept apart, or refused before any byte is sent.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class NamesContract : public Contract {};
DLOCK_CONTRACT(NamesContract);

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

const std::vector<std::string>& accepted() {
  static const std::vector<std::string> names{
      "a",
      "A",
      "a/b",
      "a/b/c",
      "a%2Fb",
      "a%252Fb",
      "a/1700000000",
      "two words",
      " ",
      "%",
      "100%",
      "%00",
      "a.lock",
      ".hidden",
      "..a",
      "a..",
      "...",
      "~",
      "a\\b",
      "a:b*c?\"d\"<e>|f",
      "{a}",
      "$a`b`",
      "Bücher/ß",
      "鍵/錠",
      "\xF0\x9F\x94\x92",
      "\xEF\xBF\xBF",
      "\xC2\x85",
      "e\xCC\x81",
      "\xC3\xA9",
      "_c_5bf8d4c1-0000-4000-8000-000000000001-lock-0000000001",
      "x/_c_5bf8d4c1-0000-4000-8000-000000000001-lock-0000000001",
      "x/5bf8d4c100004000800000000000a001__lock__0000000007",
      "x/lock-0000000001",
      "zookeeper/quota",
      std::string(512, 'n'),
      std::string(511, 'n') + "m",
      repeated("鍵", 170),
      repeated("a/", 255) + "b",
      repeated("%", 512),
  };
  return names;
}

TEST_P(NamesContract, F49_AcceptedNamesAreKeptApart) {
  auto manager = open();
  std::vector<LockHandle> held;
  for (const auto& name : accepted()) {
    auto handle = manager.lock(name)->try_acquire({.wait = 10s});
    ASSERT_TRUE(handle) << name;
    EXPECT_EQ(handle->name(), name);
    held.push_back(std::move(*handle));
  }
  for (const auto& name : accepted()) {
    const auto status = observer().status(name);
    EXPECT_EQ(status.name, name);
    EXPECT_TRUE(status.held) << name;
    EXPECT_FALSE(observer().lock(name)->try_acquire()) << name;
  }
  if (capabilities().can_list) {
    std::vector<std::string> listed;
    for (const auto& status : observer().list()) {
      if (status.held) listed.push_back(status.name);
    }
    auto expected = accepted();
    std::sort(expected.begin(), expected.end());
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, expected);
  }
  for (auto& handle : held) EXPECT_FALSE(handle.release());
  for (const auto& name : accepted()) EXPECT_FALSE(observer().status(name).held) << name;
}

TEST_P(NamesContract, NestedNamesAreHeldAtOnceByThree) {
  const auto one = peer("a");
  const auto two = peer("a/b");
  const auto three = peer("a/1700000000");
  EXPECT_TRUE(one->wait_held(patience()));
  EXPECT_TRUE(two->wait_held(patience()));
  EXPECT_TRUE(three->wait_held(patience()));
  auto manager = open();
  for (const std::string name : {"a", "a/b", "a/1700000000"}) {
    EXPECT_FALSE(manager.lock(name)->try_acquire()) << name;
    EXPECT_TRUE(observer().status(name).waiting.empty()) << name;
  }
}

TEST_P(NamesContract, F49_InvalidNamesAreRefusedBeforeAnyByteIsSent) {
  using namespace std::string_literals;
  auto manager = open();  // not connected
  for (const auto& name : {""s,
                           "/"s,
                           "/a"s,
                           "a/"s,
                           "a//b"s,
                           "."s,
                           ".."s,
                           "a/."s,
                           "a/../b"s,
                           "./a"s,
                           "a\r\nb"s,
                           "a\nb"s,
                           "a\0b"s,
                           "\t"s,
                           "a\x7F"s,
                           "\xFF"s,
                           "a\xC3"s,
                           "\xC0\xAF"s,
                           "\xED\xA0\x80"s,
                           "\xF5\x80\x80\x80"s,
                           std::string(513, 'n')}) {
    EXPECT_EQ(error_of([&] { manager.lock(name); }), errc::invalid_name) << name;
    EXPECT_EQ(error_of([&] { manager.status(name); }), errc::invalid_name) << name;
  }
}

}  // namespace
}  // namespace dlock::contract
