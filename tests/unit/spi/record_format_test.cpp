// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/record_format.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace dlock {
namespace {

TEST(RecordFormat, IsTheNumberAfterTheStamp) {
  EXPECT_EQ(format_of("v=1 until=2", "v="), 1U);
  EXPECT_EQ(format_of("v=12", "v="), 12U);
  EXPECT_EQ(format_of("dlock-run3\nx", "dlock-run"), 3U);
  for (const char* other : {"", "v=", "v=x", "v 1", "w=1", "1", " v=1", "v=-1"}) {
    EXPECT_EQ(format_of(other, "v="), 0U) << other;
  }
  EXPECT_EQ(format_of("v=99999999999999999999", "v="), std::numeric_limits<unsigned>::max());
}

TEST(RecordFormat, OnlyANewerOneIsRefused) {
  EXPECT_EQ(newer_format("dlock:{x}%permits", "v=2 limit", "v=", 1),
            "dlock:{x}%permits has format 2; this program reads format 1; upgrade it");
  for (const char* readable : {"v=1 x", "v=0", "", "something else"}) {
    EXPECT_EQ(newer_format("x", readable, "v=", 1), "") << readable;
  }
  EXPECT_EQ(newer_format("x", "v=2", "v=", 2), "");
}

}  // namespace
}  // namespace dlock
