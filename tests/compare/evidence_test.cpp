// SPDX-License-Identifier: Apache-2.0
//
// How sure a figure is, and what may be said of it.
#include "compare/report/evidence.hpp"

#include <gtest/gtest.h>

namespace dlock::compare {
namespace {

/// The numbers from..from+count-1, as samples of one round.
std::vector<Sample> samples(int count, double from = 1) {
  std::vector<Sample> all;
  for (int i = 0; i < count; ++i) all.push_back({from + i, 0});
  return all;
}

Figure figure(double low, double high, std::size_t count = 30) {
  return {(low + high) / 2, low, high, count};
}

TEST(Evidence, OfNothingThereIsNoFigure) { EXPECT_FALSE(summary({})); }

TEST(Evidence, OfFiveSamplesThereIsNoInterval) {
  const auto five = *summary(samples(5));
  EXPECT_DOUBLE_EQ(five.value, 3);
  EXPECT_EQ(five.samples, 5U);
  EXPECT_FALSE(five.has_interval());
  EXPECT_DOUBLE_EQ(five.low, five.high);
  EXPECT_TRUE(summary(samples(6))->has_interval());
}

TEST(Evidence, TheIntervalIsThatOfTheTables) {
  const auto six = *summary(samples(6));  // the extremes
  EXPECT_DOUBLE_EQ(six.low, 1);
  EXPECT_DOUBLE_EQ(six.high, 6);
  const auto twenty = *summary(samples(20));  // the 6th to the 15th
  EXPECT_DOUBLE_EQ(twenty.value, 10.5);
  EXPECT_DOUBLE_EQ(twenty.low, 6);
  EXPECT_DOUBLE_EQ(twenty.high, 15);
  const auto thirty = *summary(samples(30));  // the 10th to the 21st
  EXPECT_DOUBLE_EQ(thirty.low, 10);
  EXPECT_DOUBLE_EQ(thirty.high, 21);
}

TEST(Evidence, TheIntervalHasTheMedianOfEachRound) {
  // Fifteen samples a round: within each they agree, and the rounds do not.
  std::vector<Sample> all;
  for (int i = 0; i < 15; ++i) all.push_back({1 + i * 0.001, 0});
  for (int i = 0; i < 15; ++i) all.push_back({2 + i * 0.001, 1});
  for (int i = 0; i < 60; ++i) all.push_back({2 + i * 0.0001, 2});
  const auto figure = *summary(all);
  EXPECT_NEAR(figure.low, 1.007, 1e-9);
  EXPECT_GT(figure.value, 2);
}

TEST(Evidence, EnoughIsThirty) {
  EXPECT_FALSE(summary(samples(29))->is_enough());
  EXPECT_TRUE(summary(samples(30))->is_enough());
}

TEST(Evidence, ARatioSaysWhatItRestsOn) {
  EXPECT_EQ(show_ratio(*summary(samples(30))), "15.50 × (10.00 to 21.00, n 30)");
  EXPECT_EQ(show_ratio(*summary(samples(30)), " floor"), "15.50 × floor (10.00 to 21.00, n 30)");
  EXPECT_EQ(show_ratio(*summary(samples(9))), "5.00 × (2.00 to 8.00, n 9: too few to judge)");
  EXPECT_EQ(show_ratio(*summary(samples(1))), "1.00 × (n 1: too few to judge)");
}

TEST(Evidence, ColourOnlyWhereTheIntervalIsOnOneSide) {
  EXPECT_EQ(tone_of(figure(0.5, 0.99), Better::lower, false), "good");
  EXPECT_EQ(tone_of(figure(0.5, 1.01), Better::lower, false), "");
  EXPECT_EQ(tone_of(figure(1.2, 1.4), Better::lower, false), "");
  EXPECT_EQ(tone_of(figure(1.49, 1.9), Better::lower, false), "");
  EXPECT_EQ(tone_of(figure(1.51, 1.9), Better::lower, false), "warn");
  EXPECT_EQ(tone_of(figure(1.01, 1.9), Better::higher, false), "good");
  EXPECT_EQ(tone_of(figure(0.99, 1.9), Better::higher, false), "");
  EXPECT_EQ(tone_of(figure(0.5, 0.66), Better::higher, false), "warn");
  EXPECT_EQ(tone_of(figure(0.5, 0.67), Better::higher, false), "");
}

TEST(Evidence, FewSamplesAreGreyWhateverTheySay) {
  for (const auto better : {Better::lower, Better::higher}) {
    for (const bool busy : {false, true}) {
      EXPECT_EQ(tone_of(figure(0.1, 0.2, 29), better, busy), "thin");
      EXPECT_EQ(tone_of(figure(8, 9, 29), better, busy), "thin");
    }
  }
  EXPECT_FALSE(is_worse(figure(8, 9, 29), Better::lower, 1.25));
}

TEST(Evidence, OnABusyMachineNothingIsGoodOrBad) {
  EXPECT_EQ(tone_of(figure(0.1, 0.2), Better::lower, true), "");
  EXPECT_EQ(tone_of(figure(8, 9), Better::lower, true), "");
}

TEST(Evidence, WorseIsTheWholeInterval) {
  EXPECT_TRUE(is_worse(figure(1.3, 2), Better::lower, 1.25));
  EXPECT_FALSE(is_worse(figure(1.2, 2), Better::lower, 1.25));
  EXPECT_TRUE(is_worse(figure(0.1, 0.79), Better::higher, 1.25));
  EXPECT_FALSE(is_worse(figure(0.1, 0.81), Better::higher, 1.25));
}

TEST(Evidence, TwoRunsDifferOutsideBothIntervals) {
  EXPECT_EQ(difference(figure(1, 2), figure(2.1, 3)), Difference::differs);
  EXPECT_EQ(difference(figure(2.1, 3), figure(1, 2)), Difference::differs);
  EXPECT_EQ(difference(figure(1, 2), figure(1.9, 3)), Difference::none_shown);
  EXPECT_EQ(difference(figure(1, 9), figure(2, 3)), Difference::none_shown);
  EXPECT_EQ(difference(figure(1, 2, 29), figure(8, 9)), Difference::too_few);
  EXPECT_EQ(difference(figure(1, 2), figure(8, 9, 29)), Difference::too_few);
}

TEST(Evidence, APercentileNeedsAValueBeyond) {
  EXPECT_FALSE(enough_for(50, 0));
  EXPECT_FALSE(enough_for(99, 298));
  EXPECT_TRUE(enough_for(99, 299));
  EXPECT_FALSE(enough_for(99.9, 2994));
  EXPECT_TRUE(enough_for(99.9, 2995));
  EXPECT_TRUE(enough_for(0, 1));
}

TEST(Evidence, WhatTriesLeavePossible) {
  EXPECT_DOUBLE_EQ(at_most_percent(0), 100);
  EXPECT_NEAR(at_most_percent(1), 95, 0.01);
  EXPECT_NEAR(at_most_percent(3), 63.2, 0.05);
  EXPECT_NEAR(at_most_percent(30), 9.5, 0.05);
}

}  // namespace
}  // namespace dlock::compare
