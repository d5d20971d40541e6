// SPDX-License-Identifier: Apache-2.0
//
// Bytes in, replies out: in any pieces, within limits. And how a connection writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "backends/redis/error.hpp"
#include "backends/redis/wire/codec.hpp"
#include "backends/redis/wire/connection.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::redis {
namespace {

using testing::HasSubstr;

TEST(RedisCodec, F49_WritesCommandsWithAnyBytes) {
  std::string out = "+";
  append_command({"SET", "a b", std::string("\r\n\0x", 4)}, out);
  EXPECT_EQ(out, std::string("+*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$4\r\n\r\n\0x\r\n", 33));
}

TEST(RedisCodec, AWordIsATextInTwoPiecesOrANumber) {
  const std::string base = "dlock:{x}";
  const std::array<Word, 3> texts{Word(base, "%queue"), base, ""};
  const std::array<Word, 2> numbers{Word(std::uint64_t{0}),
                                    Word(std::numeric_limits<std::uint64_t>::max())};
  std::string out = "+";
  append_words({texts, {}, numbers}, out);
  EXPECT_EQ(out,
            "+*5\r\n$15\r\ndlock:{x}%queue\r\n$9\r\ndlock:{x}\r\n$0\r\n\r\n$1\r\n0\r\n"
            "$20\r\n18446744073709551615\r\n");
  EXPECT_EQ(texts[0].text(), "dlock:{x}%queue");
  EXPECT_EQ(numbers[1].text(), "18446744073709551615");
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

/// All of it; what is left, and then what is wrong with it.
std::string read_in_pieces(std::string_view bytes, std::size_t piece) {
  ReplyReader reader;
  std::string said;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.feed(bytes.substr(0, piece));
    while (const auto reply = reader.next()) {
      said += std::to_string(static_cast<int>(reply->kind)) + '[';
      for (const auto& item : reply->items) {
        said += std::to_string(static_cast<int>(item.kind)) + ' ' + std::to_string(item.integer) +
                ' ' + item.text + '/' + std::to_string(item.items.size()) + ',';
      }
      said += ']';
    }
  }
  return said + reader.error();
}

TEST(RedisCodec, WhatComesInOnePieceIsReadAsWhatComesInMany) {
  const std::string scripts = "*3\r\n:1\r\n$16\r\n1700000000000000\r\n$2\r\n17\r\n";
  for (const std::string& bytes :
       {scripts, scripts + scripts + "+OK\r\n" + scripts,
        scripts + "$5\r\nhe" + "llo\r\n" + scripts,
        scripts + "*0\r\n*2\r\n*1\r\n:7\r\n:-5\r\n" + scripts,
        std::string("*2\r\n:0\r\n:-9223372036854775808\r\n"), std::string("*1\r\n:007\r\n"),
        std::string("*1\r\n:-0\r\n"), std::string("*01\r\n:1\r\n"),
        std::string("*1\r\n$03\r\nabc\r\n"), std::string("*1\r\n$3\r\nabcd\r\n"),
        std::string("*1\r\n:1x\r\n"), std::string("*1\r\n:9223372036854775808\r\n"),
        std::string("*2\r\n$-1\r\n+x\r\n"), std::string("*12\r\n") + std::string(12, 'x')}) {
    for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
      EXPECT_EQ(read_in_pieces(bytes, bytes.size()), read_in_pieces(bytes, piece)) << bytes;
    }
  }
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

/// Takes so many bytes at once, and the rest when told to.
class NarrowStream final : public Stream {
 public:
  void read_some(asio::mutable_buffer into, OnRead handler) override {
    into_ = into;
    on_read = std::move(handler);
  }
  void write_all(asio::const_buffer bytes, OnWritten handler) override {
    later.assign(static_cast<const char*>(bytes.data()), bytes.size());
    on_written = std::move(handler);
  }
  std::size_t write_now(asio::const_buffer bytes, error_code& ec) override {
    if (broken) ec = asio::error::broken_pipe;
    const auto size = broken ? 0 : std::min(room, bytes.size());
    at_once.append(static_cast<const char*>(bytes.data()), size);
    room -= size;
    return size;
  }
  void close() noexcept override { closed = true; }
  void arrive(std::string_view bytes) {
    const auto size = asio::buffer_copy(into_, asio::buffer(bytes.data(), bytes.size()));
    std::exchange(on_read, {})({}, size);
  }

  std::size_t room = std::numeric_limits<std::size_t>::max();
  bool broken = false;
  bool closed = false;
  std::string at_once;
  std::string later;
  OnWritten on_written;
  OnRead on_read;

 private:
  asio::mutable_buffer into_;
};

class RedisConnection : public testing::Test {
 protected:
  void TearDown() override {
    connection_->close({});
    stream_->on_read = {};
    stream_->on_written = {};
  }

  tests::VirtualEnv env_;
  const std::shared_ptr<NarrowStream> stream_ = std::make_shared<NarrowStream>();
  const std::shared_ptr<Connection> connection_ = std::make_shared<Connection>(env_, stream_);
};

TEST_F(RedisConnection, WritesOneTurnsCommandsAtOnce) {
  connection_->start();
  const auto a = connection_->send(words({"A"}));
  const auto b = connection_->send(words({"B"}));
  EXPECT_EQ(stream_->at_once, "");
  env_.run_for({});
  EXPECT_EQ(stream_->at_once, "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n");
  EXPECT_FALSE(stream_->on_written);
  EXPECT_FALSE(a.take());
  stream_->arrive("+a\r\n+b\r\n");
  EXPECT_EQ(a.take()->reply.text, "a");
  EXPECT_EQ(b.take()->reply.text, "b");
}

// Else client and server take turns, each idle while the other works.
TEST_F(RedisConnection, TheFirstHalfOfThoseInStepGoesBeforeTheTurnIsOver) {
  connection_->start();
  const auto send_four = [this] {
    for (int i = 0; i < 4; ++i) connection_->send(words({"A"}));
  };
  const std::string two = "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nA\r\n";
  send_four();
  EXPECT_EQ(stream_->at_once, "");
  env_.run_for({});
  stream_->arrive("+a\r\n+a\r\n+a\r\n+a\r\n");
  stream_->at_once.clear();
  send_four();
  EXPECT_EQ(stream_->at_once, two);
  env_.run_for({});
  EXPECT_EQ(stream_->at_once, two + two);
  // From here on a half is under way while the other is asked.
  stream_->arrive("+a\r\n+a\r\n");
  stream_->at_once.clear();
  for (int i = 0; i < 2; ++i) connection_->send(words({"A"}));
  EXPECT_EQ(stream_->at_once, "");
  env_.run_for({});
  EXPECT_EQ(stream_->at_once, two);
}

TEST_F(RedisConnection, WhatDoesNotGoAtOnceGoesBeforeWhatComesAfterIt) {
  stream_->room = 5;
  const auto a = connection_->send(words({"A"}));
  env_.run_for({});
  EXPECT_EQ(stream_->at_once + '|' + stream_->later, "*1\r\n$|1\r\nA\r\n");
  const auto b = connection_->send(words({"B"}));
  env_.run_for({});
  EXPECT_EQ(stream_->at_once.size(), 5U) << "not before the rest";
  stream_->room = 100;
  std::exchange(stream_->on_written, {})({});
  EXPECT_EQ(stream_->at_once, "*1\r\n$*1\r\n$1\r\nB\r\n");
}

TEST_F(RedisConnection, WhatCouldNotBeWrittenIsMaybeSentAndTheRestIsNot) {
  stream_->broken = true;
  const auto a = connection_->send(words({"A"}));
  env_.run_for({});
  EXPECT_TRUE(stream_->closed);
  EXPECT_EQ(connection_->failure().error, Error::connection_lost);
  EXPECT_EQ(a.take()->kind, Outcome::Kind::lost);
  EXPECT_EQ(connection_->send(words({"B"})).take()->kind, Outcome::Kind::not_sent);
}

TEST_F(RedisConnection, WhatWaitsForAnotherWriteIsNotSent) {
  stream_->room = 5;
  const auto a = connection_->send(words({"A"}));
  env_.run_for({});
  const auto b = connection_->send(words({"B"}));
  std::exchange(stream_->on_written, {})(asio::error::connection_reset);
  EXPECT_EQ(a.take()->kind, Outcome::Kind::lost);
  EXPECT_EQ(b.take()->kind, Outcome::Kind::not_sent);
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
