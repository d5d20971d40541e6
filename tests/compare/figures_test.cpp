// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "compare/drivers/address.hpp"
#include "compare/drivers/histogram.hpp"
#include "compare/report/figures.hpp"
#include "compare/suite/contention.hpp"
#include "compare/suite/measurement.hpp"

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

TEST(Pairs, ASliceInWhichNobodyCameToLockHasNoLatency) {
  const boost::json::object none{{"p50_us", 0}, {"p99_us", 0}};
  const auto values = values_of_pairs(
      {{"pairs", 0}, {"seconds", 0.03}, {"cpu_seconds", 0.01}, {"pair", none}, {"acquire", none}});
  EXPECT_EQ(values.at("pairs_per_s").as_double(), 0);
  EXPECT_EQ(values.size(), 1U);
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

TEST(Contention, WhereNothingWasHandedOverThereIsNoLatency) {
  const auto judged = judge_turns({{1, 0, 100, 200}, {1, 210, 250, 300}}, 2);
  EXPECT_FALSE(judged.at("values").as_object().contains("handover_p50_us"));
  EXPECT_FALSE(judged.at("values").as_object().contains("handover_p99_us"));
  EXPECT_EQ(value(judged, "retakes_percent"), 50);
}

TEST(Contention, TwoHoldersAreSeen) {
  const auto judged = judge_turns({{1, 0, 100, 300}, {2, 0, 200, 400}}, 2);
  EXPECT_EQ(judged.at("overlaps").to_number<int>(), 1);
}

std::size_t broken_by(std::vector<Turn> turns, std::uint64_t permits) {
  return judge_sharing(std::move(turns), permits).at("broken").as_array().size();
}

TEST(Sharing, ReadersAreTogetherAndAWriterIsAlone) {
  const Turn reader{1, 0, 100, 300, true};
  const Turn other{2, 0, 200, 400, true};
  const auto judged = judge_sharing({reader, other, {3, 350, 400, 500}}, 0);
  EXPECT_TRUE(judged.at("broken").as_array().empty()) << "who begins to give back has it no more";
  EXPECT_EQ(value(judged, "together"), 2);
  EXPECT_EQ(judged.at("read").at("count").to_number<int>(), 2);
  EXPECT_EQ(judged.at("write").at("count").to_number<int>(), 1);
  EXPECT_EQ(judged.at("acquire").at("count").to_number<int>(), 3);
  EXPECT_EQ(broken_by({reader, other, {3, 350, 399, 500}}, 0), 1U);
  EXPECT_EQ(broken_by({{3, 0, 50, 150}, reader, other}, 0), 1U);
  EXPECT_EQ(broken_by({{1, 0, 100, 300}, {2, 0, 200, 400}}, 0), 1U);
}

TEST(Sharing, ThereAreNeverMorePermits) {
  const std::vector<Turn> two{{1, 0, 100, 300}, {2, 0, 200, 400}};
  EXPECT_EQ(broken_by(two, 2), 0U);
  EXPECT_EQ(broken_by(two, 1), 1U);
  const auto judged = judge_sharing(two, 2);
  EXPECT_EQ(value(judged, "together"), 2);
  EXPECT_FALSE(judged.contains("read"));
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
  EXPECT_EQ(ratio->samples, 2U);
  EXPECT_EQ(Figures(raw).figure({"s", "x", "dlock", 1}, "m")->samples, 2U);
}

TEST(Figures, APercentileIsToldOfEnoughValuesOnly) {
  const auto of = [](int values) {
    Histogram histogram;
    for (int i = 1; i <= values; ++i) histogram.add(static_cast<std::uint64_t>(i) * 1000);
    boost::json::object result{{"kind", "speed"},
                               {"scenario", "s"},
                               {"store", "x"},
                               {"driver", "d"},
                               {"param", 1},
                               {"repeat", 0},
                               {"values", boost::json::object{{"p99", 7}}}};
    result["pair"] = histogram.to_json();
    const boost::json::object raw{{"results", boost::json::array{result}}};
    const boost::json::object metric{{"id", "p99"}, {"histogram", "pair"}, {"percent", 99}};
    return Figures(raw).measured({"s", "x", "d", 1}, metric);
  };
  EXPECT_FALSE(of(298));  // it may well be that none of them lies beyond
  ASSERT_TRUE(of(300));
  EXPECT_NEAR(of(300)->value, 297, 1);  // of all values, and not the median of the slices' own
  EXPECT_EQ(of(300)->samples, 300U);
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
