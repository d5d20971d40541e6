// SPDX-License-Identifier: Apache-2.0
//
// When a connection with many callers writes.
#include "dlock/spi/net/write_pace.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dlock::tests {
namespace {

/// A connection whose callers all ask again once all have been answered, in one turn.
std::vector<std::size_t> writes_of_a_turn(WritePace& pace, std::size_t callers) {
  std::vector<std::size_t> writes;
  std::size_t unwritten = 0;
  for (std::size_t unanswered = 1; unanswered <= callers; ++unanswered) {
    ++unwritten;
    if (pace.asked(unanswered, unwritten)) writes.push_back(std::exchange(unwritten, 0));
  }
  if (unwritten > 0) writes.push_back(unwritten);
  return writes;
}

using Writes = std::vector<std::size_t>;

TEST(WritePace, WhoeverComesFirstWaitsForTheTurnsEnd) {
  WritePace pace;
  EXPECT_EQ(writes_of_a_turn(pace, 5), Writes{5});
}

TEST(WritePace, OneWhoIsAloneDoesNotWait) {
  WritePace pace;
  writes_of_a_turn(pace, 1);
  EXPECT_TRUE(pace.asked(1, 1));
}

TEST(WritePace, ManyInStepAreTakenApartInTwoHalves) {
  WritePace pace;
  writes_of_a_turn(pace, 16);
  EXPECT_EQ(writes_of_a_turn(pace, 16), (Writes{8, 8}));
  EXPECT_EQ(writes_of_a_turn(pace, 16), (Writes{8, 8}));
  EXPECT_EQ(writes_of_a_turn(pace, 4), Writes{4}) << "fewer than half of what was usual";
  EXPECT_EQ(writes_of_a_turn(pace, 4), (Writes{2, 2}));
  EXPECT_EQ(writes_of_a_turn(pace, 1000), (Writes{2, 998}));
}

TEST(WritePace, WhileOthersAreWithTheServerAWriteATurnDoes) {
  WritePace pace;
  writes_of_a_turn(pace, 4);
  for (std::size_t unanswered = 1; unanswered <= 2; ++unanswered) {
    EXPECT_EQ(pace.asked(unanswered, unanswered), unanswered == 2);
  }
  EXPECT_FALSE(pace.asked(3, 1));
  EXPECT_FALSE(pace.asked(4, 2));
  // Two are answered, and ask again.
  EXPECT_FALSE(pace.asked(3, 1));
  EXPECT_FALSE(pace.asked(4, 2));
}

}  // namespace
}  // namespace dlock::tests
