// SPDX-License-Identifier: Apache-2.0
//
// What a semaphore's text says.
#include <gtest/gtest.h>

#include "backends/redis/rules/permits.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPermitHolder = "01234567-89ab-cdef-0123-456789abcdef,host,42,app";
constexpr std::string_view kPermitWaiter = "11111111-2222-3333-4444-555555555555";

std::string line_of_text(std::string_view kind, int till, int permits, std::string_view who) {
  return std::string(kind) + " " + std::to_string(till) + " " + std::to_string(permits) +
         " 17 900 " + std::string(who) + "\n";
}

TEST(RedisPermitsText, SaysWhoHoldsAndWhoWaits) {
  const std::string waiter = std::string(kPermitWaiter) + "," + std::string(kPermitHolder);
  const auto text = "dlock:permits v=1 limit=3 token=17\n" +
                    line_of_text("h", 2000, 2, kPermitHolder) +
                    line_of_text("h", 1000, 1, kPermitHolder) + line_of_text("w", 3000, 3, waiter);
  const auto status = read_permits("s", text, 1000, 100ms);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->limit, 3U);
  ASSERT_EQ(status->holders.size(), 1U) << "what has expired is not there";
  EXPECT_EQ(status->holders[0].permits, 2U);
  EXPECT_EQ(status->holders[0].token, 17U);
  EXPECT_EQ(status->holders[0].owner.pid, 42);
  EXPECT_EQ(status->holders[0].held_for, 100ms);
  EXPECT_EQ(status->holders[0].remaining, 900ms) << "the lock delay comes after it";
  ASSERT_EQ(status->waiting.size(), 1U);
  EXPECT_EQ(status->waiting[0].permits, 3U);
  EXPECT_EQ(status->waiting[0].owner.host, "host");
  EXPECT_EQ(status->free(), 1U);
}

TEST(RedisPermitsText, NothingIsNobodyAndOthersTextIsNone) {
  const auto nobody = read_permits("s", "", 1000, 0ms);
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(nobody->limit);
  for (const std::string& text :
       {std::string("mine"), std::string("dlock:permits"),
        std::string("dlock:permits v=1 limit=x token=1\n"), std::string("dlock:permits 3 1\n"),
        std::string("dlock:permits v=1 limit=3 1\n"),
        std::string("dlock:permits v=2 limit=3 token=1\n"),
        std::string("dlock:permits v=1 limit=3 token=1\nq 2000 1 1 1 x\n"),
        std::string("dlock:permits v=1 limit=3 token=1\nh 2000 -1 1 1 x\n"),
        std::string("dlock:permits v=1 limit=3 token=1\nh\n")}) {
    EXPECT_FALSE(read_permits("s", text, 1000, 0ms)) << text;
  }
}

}  // namespace
}  // namespace dlock::redis
