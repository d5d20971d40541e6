// SPDX-License-Identifier: Apache-2.0
#include "dlock/sequencer_check.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace dlock {
namespace {

using Verdict = SequencerCheck::Verdict;

TEST(SequencerCheck, AdmitsTheHighestAndWhatIsHigher) {
  SequencerCheck check;
  EXPECT_EQ(check.admit("a", 5), Verdict::admitted);
  EXPECT_EQ(check.admit("a", 5), Verdict::admitted);
  EXPECT_EQ(check.admit("a", 4), Verdict::stale);
  EXPECT_EQ(check.admit("a", 9), Verdict::admitted);
  EXPECT_EQ(check.admit("a", 5), Verdict::stale);
  EXPECT_EQ(check.admit(Sequencer("a", Mode::exclusive, 8, "zk")), Verdict::stale);
  EXPECT_EQ(check.admit("b", 1), Verdict::admitted) << "each name counts for itself";
  EXPECT_EQ(check.floor(), 0U);
}

TEST(SequencerCheck, AReaderIsRefusedByAWriterOnlyAndAWriterByAnybody) {
  SequencerCheck check;
  EXPECT_EQ(check.admit("a", 7, Mode::shared), Verdict::admitted);
  EXPECT_EQ(check.admit(Sequencer("a", Mode::shared, 5, "zk")), Verdict::admitted);
  EXPECT_EQ(check.admit("a", 6), Verdict::stale) << "a writer from before a reader";
  EXPECT_EQ(check.admit("a", 7), Verdict::admitted)
      << "who stepped down had this token as a writer";
  EXPECT_EQ(check.admit("a", 7, Mode::shared), Verdict::admitted) << "and has it still";
  EXPECT_EQ(check.admit("a", 6, Mode::shared), Verdict::stale);
  EXPECT_EQ(check.admit("a", 9, Mode::shared), Verdict::admitted);
  EXPECT_EQ(check.admit("a", 8), Verdict::stale);
}

TEST(SequencerCheck, AForgottenNameNeverAdmitsWhatItHadRefused) {
  SequencerCheck check(2);
  EXPECT_EQ(check.admit("a", 10), Verdict::admitted);
  EXPECT_EQ(check.admit("b", 20), Verdict::admitted);
  EXPECT_EQ(check.admit("c", 30), Verdict::admitted);  // a is forgotten
  EXPECT_EQ(check.size(), 2U);
  EXPECT_EQ(check.floor(), 10U);
  EXPECT_EQ(check.admit("a", 9), Verdict::below_floor);
  EXPECT_EQ(check.admit("d", 9), Verdict::below_floor);
  EXPECT_EQ(check.admit("b", 19), Verdict::stale);
  EXPECT_EQ(check.admit("a", 10), Verdict::admitted) << "its highest itself is good";
}

TEST(SequencerCheck, AFullTableThatForgetsTheNewcomerAtOnceRefusesLowerOnesToo) {
  SequencerCheck check(1);
  EXPECT_EQ(check.admit("a", 100), Verdict::admitted);
  EXPECT_EQ(check.admit("b", 50), Verdict::admitted);
  EXPECT_EQ(check.admit("b", 49), Verdict::below_floor);
  EXPECT_EQ(check.admit("a", 99), Verdict::stale);
}

// Against a table without bounds: what that refuses is never admitted here.
TEST(SequencerCheck, IsNeverLaxerThanATableOfAllNames) {
  std::mt19937 random(3);
  SequencerCheck check(8);
  std::map<std::string, std::uint64_t> all;
  int refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto name = std::string(1, static_cast<char>('a' + random() % 26));
    const std::uint64_t token = random() % 5000;
    auto& highest = all[name];
    if (check.admit(name, token) == Verdict::admitted) {
      ASSERT_GE(token, highest);
      highest = token;
    } else {
      ++refused;
    }
    ASSERT_LE(check.size(), 8U);
  }
  EXPECT_GT(refused, 1000);
}

TEST(SequencerCheck, AsksOneThreadAfterTheOther) {
  SequencerCheck check;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 20'000; ++i) {
        const auto mine = i * 4 + static_cast<std::uint64_t>(t);
        if (check.admit("a", mine) == Verdict::admitted && mine > 0 &&
            check.admit("a", mine - 1) == Verdict::admitted) {
          ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace dlock
