// SPDX-License-Identifier: Apache-2.0
//
// What else the machine did: from made-up texts of /proc/stat, and of a real child that works.
#include "compare/suite/busy.hpp"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>

#include "testkit/process.hpp"

namespace dlock::compare {
namespace {

using boost::json::object;

object machine(double load, int cores = 2) { return {{"load_before", load}, {"cores", cores}}; }

object machine(double others, double worst_others, double steal, double worst_steal) {
  auto one = machine(0.1);
  one["busy"] = object{{"others_percent", others},
                       {"worst_others_percent", worst_others},
                       {"steal_percent", steal},
                       {"worst_steal_percent", worst_steal}};
  return one;
}

TEST(Busy, ReadsTheFirstLineOfProcStat) {
  const auto times =
      parse_cpu_times("cpu  1000 200 300 5000 400 50 60 70 999 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n", 100);
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->all, 70.8);   // what guests used is in the first number already
  EXPECT_DOUBLE_EQ(times->used, 15.0);  // interrupts are nobody's
  EXPECT_DOUBLE_EQ(times->steal, 0.7);
  EXPECT_FALSE(parse_cpu_times("", 100));
  EXPECT_FALSE(parse_cpu_times("cpu  1 2 3\n", 100));
  EXPECT_FALSE(parse_cpu_times("intr 1 2 3 4 5 6 7 8\n", 100));
}

TEST(Busy, SharesAreWithoutOurOwn) {
  const CpuTimes before{100, 50, 1, 10};
  const auto found = shares(before, {120, 65, 2, 20});
  EXPECT_DOUBLE_EQ(found.at("others_percent").as_double(), 25);
  EXPECT_DOUBLE_EQ(found.at("steal_percent").as_double(), 5);
  // The kernel counts in ticks: ours may look more than all that there was.
  EXPECT_DOUBLE_EQ(shares(before, {120, 51, 1, 20}).at("others_percent").as_double(), 0);
}

TEST(Busy, AQuietMachineIsNotDoubted) {
  EXPECT_TRUE(reasons_to_doubt(machine(0.9)).empty());
  EXPECT_TRUE(reasons_to_doubt(machine(9, 30, 1, 9)).empty());
  EXPECT_TRUE(reasons_to_doubt({}).empty());
}

TEST(Busy, EachReasonIsNamedWithItsFigure) {
  const auto reason = [](const object& one) {
    const auto all = reasons_to_doubt(one);
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " reasons";
  };
  EXPECT_EQ(reason(machine(3.2)), "the load average was 3.20 on 2 core(s) at the start");
  EXPECT_EQ(reason(machine(11, 20, 0, 0)),
            "other processes took 11 % of all processors, 20 % at the worst");
  EXPECT_EQ(reason(machine(1, 31, 0, 0)),
            "other processes took 1 % of all processors, 31 % at the worst");
  EXPECT_NE(reason(machine(0, 0, 3, 3)).find("(steal) took 3 % of all processors"),
            std::string::npos);
  EXPECT_NE(reason(machine(0, 0, 1, 11)).find("11 % at the worst"), std::string::npos);
  EXPECT_TRUE(reasons_to_doubt(machine(1.1, 4)).empty());  // a matter of how many cores there are
}

/// A shell that uses that much of a processor, and waits for its end of input.
testkit::ProcessOptions worker() {
  return {
      .argv = {"/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo x; cat"}};
}

TEST(Busy, WhatOurChildrenUseIsOurs) {
  const auto before = cpu_times();
  ASSERT_TRUE(before);
  double living = 0;
  {
    testkit::Process child(worker());
    ASSERT_TRUE(child.read_line(testkit::within(std::chrono::seconds(60))));
    living = cpu_times()->own;
    EXPECT_GT(living - before->own, 0.03);
    child.kill_and_wait();
  }
  // ... and stays so when it is gone.
  EXPECT_GT(cpu_times()->own - before->own, 0.03);
}

TEST(Busy, TheWatchSaysWhatItSaw) {
  BusyWatch watch;
  object found;
  ASSERT_TRUE(testkit::eventually(testkit::within(std::chrono::seconds(30)), [&] {
    found = watch.so_far();
    return !found.empty();
  }));
  EXPECT_GE(found.at("others_percent").as_double(), 0);
  EXPECT_LE(found.at("others_percent").as_double(), 100);
  EXPECT_GE(found.at("worst_others_percent").as_double(),
            found.at("others_percent").as_double() - 0.01);
  EXPECT_EQ(found.at("looks").at(0).as_array().size(), 4U);
}

}  // namespace
}  // namespace dlock::compare
