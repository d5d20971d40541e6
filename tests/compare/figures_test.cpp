// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "compare/drivers/address.hpp"
#include "compare/drivers/histogram.hpp"
#include "compare/report/figures.hpp"
#include "compare/suite/contention.hpp"

namespace dlock::compare {
namespace {

double value(const boost::json::object& judged, const char* name) {
  return judged.at("values").at(name).to_number<double>();
}

TEST(Histogram, KeepsThreeDigits) {
  for (const std::uint64_t one : {1ULL, 999ULL, 1024ULL, 123'456ULL, 9'876'543'210ULL}) {
    Histogram histogram;
    histogram.add(one);
    EXPECT_NEAR(histogram.percentile_ns(50), static_cast<double>(one),
                static_cast<double>(one) * 0.002);
  }
}

TEST(Histogram, PercentilesOfManyValues) {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 1000; ++i) histogram.add(i);
  EXPECT_EQ(histogram.percentile_ns(50), 500);
  EXPECT_EQ(histogram.percentile_ns(99), 990);
  EXPECT_EQ(histogram.percentile_ns(100), 1000);
  EXPECT_EQ(histogram.count(), 1000U);
}

TEST(Histogram, OutOfJsonIsTheSame) {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 300; ++i) histogram.add(i * i * 1000);
  const auto copy = Histogram::from_json(histogram.to_json());
  for (const double percent : {1.0, 50.0, 99.0}) {
    EXPECT_NEAR(copy.percentile_ns(percent), histogram.percentile_ns(percent),
                histogram.percentile_ns(percent) * 0.002);
  }
}

TEST(Contention, HandOverIsCountedToAnotherClientOnly) {
  const auto judged = judge_turns({{1, 0, 100, 200}, {1, 210, 250, 300}, {2, 0, 400, 500}}, 2);
  EXPECT_NEAR(value(judged, "handover_p50_us"), 0.1, 0.001);
  EXPECT_NEAR(value(judged, "retakes_percent"), 100.0 / 3, 0.1);
}

TEST(Contention, JainsIndex) {
  EXPECT_DOUBLE_EQ(value(judge_turns({{1, 0, 1, 2}, {2, 0, 3, 4}}, 2), "jain"), 1.0);
  EXPECT_DOUBLE_EQ(value(judge_turns({{1, 0, 1, 2}, {1, 2, 3, 4}}, 2), "jain"), 0.5);
}

TEST(Contention, WhoWasPassedIsCounted) {
  constexpr std::int64_t ms = 1'000'000;
  // Client 2 asked first and came last.
  const auto judged =
      judge_turns({{1, 10 * ms, 20 * ms, 21 * ms}, {2, 1 * ms, 30 * ms, 31 * ms}}, 2);
  EXPECT_DOUBLE_EQ(value(judged, "inversions_percent"), 50.0);
}

TEST(Contention, WhatComesAfterAClientHasStoppedIsLeftOut) {
  const auto kept = until_the_first_stopped(
      {{1, 0, 1, 2}, {1, 2, 3, 4}, {2, 0, 5, 6}, {2, 6, 7, 8}, {2, 8, 9, 10}}, 2);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_DOUBLE_EQ(value(judge_turns(kept, 2), "jain"), 0.5);
}

TEST(Contention, TwoHoldersAreSeen) {
  const auto judged = judge_turns({{1, 0, 100, 300}, {2, 0, 200, 400}}, 2);
  EXPECT_EQ(judged.at("overlaps").to_number<int>(), 1);
}

TEST(Figures, RatiosAreWithinEachRepeat) {
  const auto raw = boost::json::parse(R"({"results": [
    {"kind":"speed","scenario":"s","store":"x","driver":"dlock","param":1,"repeat":0,"values":{"m":20}},
    {"kind":"speed","scenario":"s","store":"x","driver":"floor","param":1,"repeat":0,"values":{"m":10}},
    {"kind":"speed","scenario":"s","store":"x","driver":"dlock","param":1,"repeat":2,"values":{"m":400}},
    {"kind":"speed","scenario":"s","store":"x","driver":"dlock","param":1,"repeat":1,"failed":"so"},
    {"kind":"speed","scenario":"s","store":"x","driver":"floor","param":1,"repeat":1,"values":{"m":7}},
    {"kind":"speed","scenario":"s","store":"x","driver":"floor","param":1,"repeat":2,"values":{"m":200}}]})")
                       .as_object();
  const auto ratio = Figures(raw).ratio({"s", "x", "dlock", 1}, "floor", "m");
  ASSERT_TRUE(ratio);
  EXPECT_DOUBLE_EQ(ratio->value, 2);
  EXPECT_FALSE(ratio->noisy());
  EXPECT_TRUE(Figures(raw).figure({"s", "x", "dlock", 1}, "m")->noisy());
}

TEST(Figures, SpreadIsHowWellTheMedianIsKnown) {
  const auto of = [](int repeats) {
    std::string results;
    for (int i = 0; i < repeats; ++i) {
      results += (i > 0 ? "," : "") +
                 (R"({"kind":"speed","scenario":"s","store":"x","driver":"d",)" +
                  fmt::format(R"("param":1,"repeat":{},"values":{{"m":{}}}}})", i, 100 + i));
    }
    const auto raw = boost::json::parse(R"({"results": [)" + results + "]}").as_object();
    return *Figures(raw).figure({"s", "x", "d", 1}, "m");
  };
  EXPECT_DOUBLE_EQ(of(1).spread, 0);
  EXPECT_DOUBLE_EQ(of(5).value, 102);
  EXPECT_DOUBLE_EQ(of(5).spread,
                   2.0 / 102);  // no more is known than that it lies between the extremes
  EXPECT_DOUBLE_EQ(of(6).spread, 2.5 / 102.5);
  EXPECT_DOUBLE_EQ(of(20).value, 109.5);
  EXPECT_DOUBLE_EQ(of(20).spread, 4.5 / 109.5);  // the 6th to the 15th, by the tables
}

TEST(Figures, NumbersForPeople) {
  EXPECT_EQ(show(2'008'791, "/s"), "2,008,791/s");
  EXPECT_EQ(show(1'234, "µs"), "1.23 ms");
  EXPECT_EQ(show(17.44, "µs"), "17.4 µs");
  EXPECT_EQ(show(2, ""), "2");
}

TEST(Address, TakesAStoresUrlApart) {
  const auto one = parse_address("zookeeper://h1:1,h2:2/app?session_timeout=3s");
  EXPECT_EQ(one.hosts, "h1:1,h2:2");
  EXPECT_EQ(one.host, "h1");
  EXPECT_EQ(one.port, 1);
  EXPECT_EQ(one.path, "/app");
  EXPECT_EQ(parse_address("redis://user:word@h/0").host, "h");
  EXPECT_EQ(parse_address("file:///a/b").path, "/a/b");
  EXPECT_THROW(parse_address("nothing"), std::invalid_argument);
}

}  // namespace
}  // namespace dlock::compare
