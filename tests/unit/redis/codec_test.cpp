// SPDX-License-Identifier: Apache-2.0
//
// Bytes in, replies out: in any pieces, within limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/redis/wire/codec.hpp"

namespace dlock::redis {
namespace {

using testing::HasSubstr;

TEST(RedisCodec, F49_WritesCommandsWithAnyBytes) {
  std::string out = "+";
  append_command({"SET", "a b", std::string("\r\n\0x", 4)}, out);
  EXPECT_EQ(out, std::string("+*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$4\r\n\r\n\0x\r\n", 33));
}

TEST(RedisCodec, ReadsEveryKindOfReplyByteByByte) {
  const std::string bytes =
      "+OK\r\n-ERR no\r\n:-7\r\n$-1\r\n$3\r\na\r\n\r\n*-1\r\n*3\r\n:1\r\n$0\r\n\r\n*1\r\n+x\r\n";
  ReplyReader reader;
  std::vector<Reply> replies;
  for (const char byte : bytes) {
    reader.feed({&byte, 1});
    while (auto reply = reader.next()) replies.push_back(std::move(*reply));
  }
  ASSERT_TRUE(reader.error().empty()) << reader.error();
  ASSERT_EQ(replies.size(), 7U);
  EXPECT_EQ(replies[0].kind, Reply::Kind::status);
  EXPECT_EQ(replies[0].text, "OK");
  EXPECT_TRUE(replies[1].is_error());
  EXPECT_EQ(replies[1].text, "ERR no");
  EXPECT_EQ(replies[2].integer, -7);
  EXPECT_EQ(replies[3].kind, Reply::Kind::nil);
  EXPECT_EQ(replies[4].kind, Reply::Kind::text);
  EXPECT_EQ(replies[4].text, "a\r\n");
  EXPECT_EQ(replies[5].kind, Reply::Kind::nil);
  ASSERT_EQ(replies[6].items.size(), 3U);
  EXPECT_EQ(replies[6].items[0].integer, 1);
  EXPECT_EQ(replies[6].items[1].kind, Reply::Kind::text);
  EXPECT_EQ(replies[6].items[2].items[0].text, "x");
}

TEST(RedisCodec, ManyRepliesInOnePiece) {
  ReplyReader reader;
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += ":" + std::to_string(i) + "\r\n";
  reader.feed(bytes);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(reader.next()->integer, i);
  EXPECT_FALSE(reader.next());
}

struct Broken {
  const char* name;
  std::string bytes;
  const char* says;
};

TEST(RedisCodec, RefusesWhatIsNoReplyOrTooMuch) {
  std::string deep;
  for (int i = 0; i < 20; ++i) deep += "*1\r\n";
  const Broken table[] = {
      {"another protocol", "HTTP/1.1 400 Bad Request\r\n", "Protocol error"},
      {"array longer than the limit", "*2147483647\r\n", "too many elements"},
      {"arrays longer than the limit together", "*6\r\n*6\r\n", "too many elements"},
      {"negative array", "*-5\r\n", "out of range"},
      {"negative string", "$-5\r\n", "out of range"},
      {"deeper than seven", deep, "nested"},
      {"text longer than the limit", "$100000\r\n" + std::string(2000, 'x'), "longer"},
      {"number without end", ":1" + std::string(3000, '1'), "longer"},
  };
  for (const auto& row : table) {
    ReplyReader reader({.bytes = 1000, .elements = 10});
    reader.feed(row.bytes);
    EXPECT_FALSE(reader.next()) << row.name;
    EXPECT_THAT(reader.error(), HasSubstr(row.says)) << row.name;
    reader.feed("+OK\r\n");
    EXPECT_FALSE(reader.next()) << row.name;
  }
}

TEST(RedisCodec, TheLimitsAreOfOneReplyAndNotOfTheConnection) {
  ReplyReader reader({.bytes = 100, .elements = 4});
  for (int i = 0; i < 100; ++i) {
    reader.feed("*3\r\n:1\r\n:2\r\n:3\r\n$40\r\n" + std::string(40, 'x') + "\r\n");
    ASSERT_TRUE(reader.next()) << i << reader.error();
    ASSERT_TRUE(reader.next()) << i << reader.error();
  }
}

}  // namespace
}  // namespace dlock::redis
