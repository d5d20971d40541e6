// SPDX-License-Identifier: Apache-2.0
//
// What a lock's text says while readers are in, and what it says to who knows nothing of them.
#include "backends/redis/rules/readers.hpp"

#include <gtest/gtest.h>

#include "backends/redis/rules/hand_over.hpp"
#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kReading = "01234567-89ab-cdef-0123-456789abcdef,host,42,app";
constexpr std::string_view kAlsoReading = "11111111-2222-3333-4444-555555555555,there,43,app";

std::string text_of_two() {
  return std::string(kReadersPrefix) + "2000 17 900 " + std::string(kReading) + "\n" +
         "1500 18 950 " + std::string(kAlsoReading) + "\n";
}

TEST(RedisReadersText, SaysWhoReadsFirstComeFirst) {
  const auto records = read_readers(text_of_two());
  ASSERT_TRUE(records);
  LockStatus status;
  add_readers(*records, 1'000'000, 100ms, status);
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.mode, Mode::shared);
  ASSERT_EQ(status.readers.size(), 2U);
  EXPECT_EQ(status.readers[0].token, 17U);
  EXPECT_EQ(status.readers[0].owner.pid, 42);
  EXPECT_EQ(status.readers[0].held_for, 100ms);
  EXPECT_EQ(status.readers[0].remaining, 900ms) << "the lock delay comes after it";
  EXPECT_EQ(status.readers[1].owner.host, "there");
  EXPECT_EQ(status.token, 17U);
  EXPECT_EQ(status.owner->id, status.readers[0].owner.id);
}

TEST(RedisReadersText, WhoHasExpiredIsNotThere) {
  const auto records = read_readers(text_of_two());
  ASSERT_TRUE(records);
  LockStatus one;
  add_readers(*records, 1'500'000, 0ms, one);
  ASSERT_EQ(one.readers.size(), 1U);
  EXPECT_EQ(one.token, 17U);
  LockStatus none;
  add_readers(*records, 2'000'000, 0ms, none);
  EXPECT_FALSE(none.held);
  EXPECT_FALSE(none.owner);
}

TEST(RedisReadersText, OthersTextIsNone) {
  for (const auto* text :
       {"", "17:owner", "dlock:readers", "dlock:record:x", "dlock:readers\n1 2 3 owner\n",
        "dlock:readers v=2\n1 2 3 owner\n", "dlock:readers v=1\n1 2 owner\n",
        "dlock:readers v=1\n-1 2 3 owner\n", "dlock:readers v=1\n1 9007199254740992 3 owner\n"}) {
    EXPECT_FALSE(read_readers(text)) << text;
  }
  EXPECT_TRUE(read_readers(kReadersPrefix)) << "nobody is in it";
}

TEST(RedisReadersText, ToWhoKnowsNothingOfReadersItIsAnothersLock) {
  const auto value = read_value(text_of_two());
  EXPECT_FALSE(value.token);
  EXPECT_FALSE(value.owner.id.empty());
  EXPECT_FALSE(text_of_two().starts_with(kRecordPrefix));
}

TEST(RedisReadersText, AReaderIsHandedNothing) {
  ClaimRequest request;
  request.lease = 5s;
  EXPECT_TRUE(may_be_handed(request));
  EXPECT_TRUE(sends_presence(request));
  request.mode = Mode::shared;
  EXPECT_FALSE(may_be_handed(request));
  EXPECT_FALSE(sends_presence(request));
}

}  // namespace
}  // namespace dlock::redis
