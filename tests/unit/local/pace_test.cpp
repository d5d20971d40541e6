// SPDX-License-Identifier: Apache-2.0
#include "backends/local/rules/pace.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace dlock::local {
namespace {

using namespace std::chrono_literals;

TEST(LocalPace, TheNextLooksOften) {
  EXPECT_EQ(pause_untold(0), 10ms);
  EXPECT_EQ(pause_untold(1), 10ms);
  EXPECT_EQ(pause_untold(4), 10ms);
}

TEST(LocalPace, APauseIsAQuarterOfAHundredthForEachBefore) {
  for (const auto& [ahead, pause] : {std::pair{0, 10'000us},
                                     {5, 12'500us},
                                     {99, 247'500us},
                                     {100, 250'000us},
                                     {101, 250'000us}}) {
    EXPECT_EQ(pause_untold(static_cast<std::uint64_t>(ahead)), pause) << ahead;
  }
}

// Each before it takes 5 ms on average to find that it is next.
TEST(LocalPace, NobodySleepsLongerThanThoseBeforeItTake) {
  for (std::uint64_t ahead = 2; ahead <= 10'000; ++ahead) {
    EXPECT_LE(pause_untold(ahead), std::max<Duration>(ahead * Duration(5ms), 10ms)) << ahead;
  }
}

TEST(LocalPace, WhoIsFarBehindLooksNoLessThanFourTimesASecond) {
  EXPECT_EQ(pause_untold(100), 250ms);
  EXPECT_EQ(pause_untold(std::numeric_limits<std::uint64_t>::max()), 250ms);
}

TEST(LocalPace, AThousandLookLessOftenThanAHundredDid) {
  double looks_a_second = 0;
  for (std::uint64_t ahead = 0; ahead < 1'000; ++ahead) {
    looks_a_second += std::chrono::duration<double>(1s) / pause_untold(ahead);
  }
  EXPECT_LT(looks_a_second, 6'000);  // 100,000 if all looked every 10 ms
}

}  // namespace
}  // namespace dlock::local
