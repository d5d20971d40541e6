// SPDX-License-Identifier: Apache-2.0
#include "core/loop/halt_poll.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using std::chrono::microseconds;

TEST(HaltPoll, TheFirstWaitIsSleep) { EXPECT_EQ(HaltPoll(2).window(), Duration::zero()); }

TEST(HaltPoll, LooksAfterAWaitThatLookingWouldHaveShortened) {
  HaltPoll poll(2);
  poll.waited(HaltPoll::kReach);
  EXPECT_EQ(poll.window(), HaltPoll::kMost);
}

TEST(HaltPoll, SleepsAfterALongerOne) {
  HaltPoll poll(2);
  poll.waited(microseconds(1));
  poll.waited(HaltPoll::kReach + Duration(1));
  EXPECT_EQ(poll.window(), Duration::zero());
}

TEST(HaltPoll, NeverLooksOnOneProcessor) {
  HaltPoll poll(1);
  poll.waited(microseconds(1));
  EXPECT_EQ(poll.window(), Duration::zero());
}

TEST(HaltPoll, WhatIsFoundByLookingSparesTheSleep) {
  HaltPoll poll(2);
  bool spared = false;
  // More than once: a busy machine may keep it from running for its whole window.
  for (int tries = 0; tries < 1000 && !spared; ++tries) {
    poll.waited(microseconds(1));
    spared = true;
    poll.wait([] { return true; }, [&] { spared = false; });
  }
  EXPECT_TRUE(spared);
}

TEST(HaltPoll, LooksForItsWindowAndThenSleeps) {
  HaltPoll poll(2);
  poll.waited(microseconds(1));
  int slept = 0;
  const auto start = BoottimeClock::now();
  poll.wait([] { return false; }, [&] { ++slept; });
  EXPECT_GE(BoottimeClock::now() - start, HaltPoll::kMost);
  EXPECT_EQ(slept, 1);
}

}  // namespace
}  // namespace dlock::core
