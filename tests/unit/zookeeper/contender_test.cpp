// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/contender.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlock::zookeeper {
namespace {

using Kind = Contender::Kind;
using testing::ElementsAre;

struct Case {
  const char* node;
  Kind kind;
  std::int32_t sequence;
};

constexpr const char* kUuid = "01234567-89ab-cdef-0123-456789abcdef";

class Contenders : public testing::TestWithParam<Case> {};

TEST_P(Contenders, AreToldByTheirNames) {
  const auto contender = parse_contender(GetParam().node);
  ASSERT_TRUE(contender.has_value()) << GetParam().node;
  EXPECT_EQ(contender->kind, GetParam().kind) << GetParam().node;
  EXPECT_EQ(contender->sequence, GetParam().sequence) << GetParam().node;
  EXPECT_EQ(contender->name, GetParam().node);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Contenders,
    testing::Values(
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000", Kind::mutex, 0},
        Case{"_c_01234567-89AB-cdef-0123-456789abcdef-lock-2147483647", Kind::mutex, 2147483647},
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-lock--2147483648", Kind::mutex,
             -2147483647 - 1},
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-lock--000000005", Kind::mutex, -5},
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-move-lock-0000000007", Kind::move, 7},
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000012", Kind::write, 12},
        Case{"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000013", Kind::read, 13},
        // go-zookeeper: no dashes in its uuid; kazoo, renamed kazoo, kazoo's reader, madelson, C
        // recipe
        Case{"_c_0123456789abcdef0123456789abcdef-lock-0000000003", Kind::foreign, 3},
        Case{"0123456789abcdef0123456789abcdef__lock__0000000004", Kind::foreign, 4},
        Case{"0123456789abcdef0123456789abcdef__lock__-000000004", Kind::foreign, -4},
        Case{"0123456789abcdef0123456789abcdef__rlock__0000000004", Kind::reader, 4},
        Case{"0123456789abcdef0123456789abcdef-lock-0000000005", Kind::foreign, 5},
        Case{"lock-0000000006", Kind::foreign, 6}, Case{"read-0000000006", Kind::reader, 6},
        Case{"write-0000000006", Kind::foreign, 6},
        Case{"lock-0000000001lock-0000000002", Kind::foreign, 2},
        Case{"x-0123456789abcdef-0000000008", Kind::foreign, 8},
        Case{"01234567-89ab-cdef-0123-456789abcdef-lock--0000000000", Kind::seal, 0},
        Case{"01234567-89ab-cdef-0123-456789abcdef-__WRIT__-0000000000", Kind::seal, 0}));

TEST(Contender, WhatNobodyWouldWriteIsNone) {
  for (const char* node : {
           "1700000000",
           "a",
           "",
           "locks",
           "leases",
           "lock",
           "lock-",
           "lock-1",
           "lock-12345678901",
           "lock-0000000001x",
           "lock-0000000001-0000000002",
           "_c_01234567-89ab-cdef-0123-456789abcdef-lock-",
           "_c_01234567-89ab-cdef-0123-456789abcdef-lock-00000000x0",
           "_c_01234567-89ab-cdef-0123-456789abcdef-lock-9999999999",    // beyond 32 bits
           "_c_01234567-89ab-cdef-0123-456789abcdef-lock-000000000%30",  // a lock's name, escaped
           "_c_01234567-89ab-cdef-0123-456789abcdef-lease-0000000001",
           "_c_01234567-89ab-cdef-0123-456789abcdef-lock--0000000001",
           "0123456789abcdef0123456789abcdef__lock__000000004",
           "x-0123456789abcdef-00000000",
           "x-0123-0000000008",
           "bread-0000000001",
       }) {
    EXPECT_FALSE(parse_contender(node).has_value()) << node;
  }
}

TEST(Contender, ASealIsNoCopyOfItsMaker) {
  const std::string id = "01234567-89ab-cdef-0123-456789abcdef";
  for (const bool among_readers_and_writers : {false, true}) {
    const auto name = seal_name(id, among_readers_and_writers);
    const auto seal = parse_contender(name);
    ASSERT_TRUE(seal) << name;
    EXPECT_EQ(seal->kind, Contender::Kind::seal);
    EXPECT_TRUE(copies_of(id, {name}).empty());
  }
  EXPECT_EQ(seal_name(id, false), id + "-lock--0000000000");
  EXPECT_EQ(seal_name(id, true), id + "-__WRIT__-0000000000");
}

TEST(Contender, OurCopiesAreFoundByTheirId) {
  const auto prefix = contender_prefix(kUuid);
  EXPECT_EQ(prefix, std::string("_c_") + kUuid + "-lock-");
  const std::vector<std::string> children = {
      prefix + "0000000004", "lock-0000000001", prefix + "0000000002",
      "_c_11234567-89ab-cdef-0123-456789abcdef-lock-0000000000"};
  EXPECT_THAT(copies_of(kUuid, children),
              ElementsAre(prefix + "0000000004", prefix + "0000000002"));
}

TEST(Contender, OurReadersAndWritersAreCopiesToo) {
  const auto reader = contender_prefix(kUuid, Contender::Kind::read) + "0000000007";
  const auto writer = contender_prefix(kUuid, Contender::Kind::write) + "0000000008";
  EXPECT_EQ(reader, std::string("_c_") + kUuid + "-__READ__0000000007");
  EXPECT_EQ(writer, std::string("_c_") + kUuid + "-__WRIT__0000000008");
  EXPECT_THAT(copies_of(kUuid, {reader, writer}), ElementsAre(reader, writer));
  EXPECT_EQ(parse_contender(reader)->kind, Contender::Kind::read);
  EXPECT_EQ(parse_contender(writer)->kind, Contender::Kind::write);
}

TEST(Contender, WhoStepsDownKeepsItsNumber) {
  for (const auto kind : {Contender::Kind::mutex, Contender::Kind::write}) {
    const auto node = contender_prefix(kUuid, kind) + "0000000007";
    EXPECT_EQ(stepped_down(kUuid, node), std::string("_c_") + kUuid + "-__READ__0000000007");
  }
  for (const auto* number : {"2147483647", "2147483000", "-000000001", "-2147483648"}) {
    EXPECT_EQ(stepped_down(kUuid, contender_prefix(kUuid) + number), "") << number;
  }
}

}  // namespace
}  // namespace dlock::zookeeper
