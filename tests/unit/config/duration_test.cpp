// SPDX-License-Identifier: Apache-2.0
#include "dlock/duration.hpp"

#include <gtest/gtest.h>

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ReadsWhatPeopleWrite) {
  const std::pair<const char*, std::int64_t> table[] = {
      {"10s", 10'000},
      {"500ms", 500},
      {"1m30s", 90'000},
      {"2h", 7'200'000},
      {"1.5s", 1'500},
      {"0.25s", 250},
      {"0", 0},
      {"0s", 0},
      {"1d", 86'400'000},
      {"1h2m3s4ms", 3'723'004},
      {"36500d", 36'500LL * 86'400'000},
  };
  for (const auto& [text, ms] : table) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error;
    EXPECT_EQ(*parsed.value, milliseconds(ms)) << text;
  }
}

TEST(Duration, RefusesTheRestWithARemedy) {
  const std::pair<const char*, const char*> table[] = {
      {"", "it is empty"},
      {"10", "it has no unit; write 10s or 10ms"},
      {"1m30", "it has no unit; write 30s or 30ms"},
      {"-5s", "it is negative"},
      {"5x", "'x' is not a unit; use ms, s, m, h or d"},
      {"5S", "'S' is not a unit"},
      {"soon", "write for example 10s"},
      {"1s1m", "falling order"},
      {"1s1s", "falling order"},
      {"0.0001s", "whole number of milliseconds"},
      {"1.s", "not a duration"},
      {".5s", "not a duration"},
      {"1 s", "it has no unit"},
      {"10s ", "not a duration"},
      {"999999999999999d", "longer than a century"},
      {"9999999999999999999s", "not a duration"},
      {"36500d1s", "longer than a century"},
  };
  for (const auto& [text, complaint] : table) {
    const auto parsed = parse_duration(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error.find(complaint), std::string::npos) << text << ": " << parsed.error;
  }
}

TEST(Duration, FormatsWhatItReads) {
  for (const std::int64_t ms : {0, 1, 20, 999, 1'000, 1'500, 90'000, 3'723'004, 86'400'000}) {
    const auto text = format_duration(milliseconds(ms));
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed.value->count(), ms) << text;
  }
  EXPECT_EQ(format_duration(milliseconds(90'000)), "1m30s");
  EXPECT_EQ(format_duration(milliseconds(0)), "0s");
  EXPECT_EQ(format_duration(milliseconds(-1'500)), "-1s500ms");
}

}  // namespace
}  // namespace dlock::core
