// SPDX-License-Identifier: Apache-2.0
//
// Commands as bytes, and replies in any pieces, within limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/memcached/wire/codec.hpp"

namespace dlock::memcached {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void feed(ReplyReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = reader.room();
    const auto size = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), size);
    reader.received(size);
    bytes.remove_prefix(size);
  }
}

std::string shown(const Piece& piece) {
  return std::string(piece.line) + (piece.has_data ? "|" + std::string(piece.data) : "");
}

TEST(MemcachedCodec, WritesClassicCommands) {
  std::string out;
  put_add({"k", "ab", 7, 31}, out);
  put_cas({"k", "", 0, 2'592'001}, 18'446'744'073'709'551'615U, out);
  put_incr("k%t", 1, out);
  put_gets({"a", "b"}, out);
  EXPECT_EQ(out,
            "add k 7 31 2\r\nab\r\n"
            "cas k 0 2592001 0 18446744073709551615\r\n\r\n"
            "incr k%t 1\r\n"
            "gets a b\r\n");
}

TEST(MemcachedCodec, WritesMetaCommands) {
  std::string out;
  put_meta_add({"k", "ab", 7, 31}, 12, out);
  put_meta_cas({"k", "ab", 0, 0}, 5, 13, out);
  put_meta_incr("k%t", 1, 14, out);
  put_meta_delete("k", 5, 15, out);
  EXPECT_EQ(out,
            "ms k 2 T31 F7 c O12 ME\r\nab\r\n"
            "ms k 2 T0 c O13 C5\r\nab\r\n"
            "ma k%t v D1 O14\r\n"
            "md k C5 O15\r\n");
}

TEST(MemcachedCodec, ReadsPiecesByteByByte) {
  const std::string bytes =
      "STORED\r\nVALUE k 0 4 77\r\na\r\nb\r\nVALUE e 0 0 1\r\n\r\nEND\r\nVA 2 O3\r\n41\r\n\r\n";
  ReplyReader reader;
  std::vector<std::string> pieces;
  for (const char byte : bytes) {
    feed(reader, {&byte, 1});
    while (const auto piece = reader.next(true)) pieces.push_back(shown(*piece));
  }
  EXPECT_EQ(reader.error(), "");
  EXPECT_THAT(pieces, ElementsAre("STORED", "VALUE k 0 4 77|a\r\nb", "VALUE e 0 0 1|", "END",
                                  "VA 2 O3|41", ""));
  EXPECT_TRUE(reader.is_empty());
}

TEST(MemcachedCodec, DataIsReadWhereItIsExpectedOnly) {
  ReplyReader reader;
  feed(reader, "VALUE k 0 3 1\r\nabc\r\n");
  EXPECT_EQ(shown(*reader.next(false)), "VALUE k 0 3 1");
  EXPECT_FALSE(reader.is_empty());
}

TEST(MemcachedCodec, F49_WhatIsNoReplyIsAnErrorAndNothingMoreIsGiven) {
  struct Row {
    std::string bytes;
    const char* error;
  };
  const std::vector<Row> rows{
      {std::string(5000, 'a'), "without end"},
      {std::string(4500, 'a') + "\r\n", "too long"},
      {"VALUE k 0 4294967295 1\r\nabc", "length"},
      {"VALUE k 0 -1 1\r\nabc\r\n", "length"},
      {"VALUE k 0\r\n", "length"},
      {"VA x\r\n", "length"},
      {"VALUE k 0 1 1\r\nabc\r\n", "another length"},
  };
  for (const auto& row : rows) {
    ReplyReader reader;
    feed(reader, row.bytes);
    EXPECT_FALSE(reader.next(true)) << row.bytes.substr(0, 40);
    EXPECT_THAT(reader.error(), HasSubstr(row.error));
    feed(reader, "STORED\r\n");
    EXPECT_FALSE(reader.next(true));
  }
}

TEST(MemcachedCodec, ALargeValueIsReadAndALargerOneIsNot) {
  ReplyReader reader;
  const std::string large(ReplyReader::kLongestData, 'x');
  feed(reader, "VALUE k 0 " + std::to_string(large.size()) + " 1\r\n" + large + "\r\nEND\r\n");
  EXPECT_EQ(reader.next(true)->data.size(), large.size());
  EXPECT_EQ(reader.next(true)->line, "END");
  feed(reader, "VALUE k 0 " + std::to_string(large.size() + 1) + " 1\r\n");
  EXPECT_FALSE(reader.next(true));
  EXPECT_NE(reader.error(), "");
}

TEST(MemcachedCodec, ReadsLines) {
  const auto item = read_item_line("VALUE dlock:x 7 300 18446744073709551615");
  ASSERT_TRUE(item);
  EXPECT_EQ(item->key, "dlock:x");
  EXPECT_EQ(item->cas, UINT64_MAX);
  for (const auto* line : {"VALUE k 0 3", "VALUE k 0 3 x", "VALUE k 0 3 1 1", "END", ""}) {
    EXPECT_FALSE(read_item_line(line)) << line;
  }
  const auto meta = read_meta_line("HD c45 O12");
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->code, "HD");
  EXPECT_EQ(meta->cas, 45U);
  EXPECT_EQ(meta->tag, 12U);
  EXPECT_EQ(read_meta_line("VA 16 O3")->tag, 3U);
  EXPECT_EQ(read_meta_line("NS c0 O3")->cas, 0U);
  EXPECT_FALSE(read_meta_line("EX")->tag);
  for (const auto* line : {"ERROR", "SERVER_ERROR out of memory", "hd", "HD cx O1", ""}) {
    EXPECT_FALSE(read_meta_line(line)) << line;
  }
}

}  // namespace
}  // namespace dlock::memcached
