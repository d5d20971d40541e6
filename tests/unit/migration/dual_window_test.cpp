// SPDX-License-Identifier: Apache-2.0
//
// The window of mode dual: its text, who may register, and when a registration is over.
#include <gtest/gtest.h>

#include "migration/dual/window.hpp"
#include "migration/dual/window_watch.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Program program(const std::string& id, int phase) {
  Program made;
  made.id = id;
  made.phase = phase;
  made.pid = 4711;
  made.host = "h";
  made.app = "worker";
  return made;
}

const std::string kOne = "00000000-0001";
const std::string kTwo = "00000000-0002";

Window window() {
  Window made;
  made.plan = "billing-2026";
  made.plan_id = "0123456789abcdef";
  made.from = "zk";
  made.to = "redis";
  made.born = "fedcba9876543210";
  made.lo = 0;
  made.hi = 1;
  made.ver = 3;
  made.seq = 17;
  made.floor = 1000;
  made.top = 2000;
  made.lease = seconds(3);
  made.since_ms = 1'700'000'000'000;
  return made;
}

TEST(DualWindow, ATextIsReadBackAsItWas) {
  auto full = window();
  EXPECT_EQ(parse_window(to_text(full)), full);
  ASSERT_EQ(enter(full, program(kTwo, 1)), Entry::entered);
  ASSERT_EQ(enter(full, program(kOne, 0)), Entry::entered);
  EXPECT_EQ(full.programs.front().id, kOne);  // sorted
  std::string why;
  EXPECT_EQ(parse_window(to_text(full), &why), full) << why;
}

TEST(DualWindow, WhatIsNotExactlyATextIsRefused) {
  auto full = window();
  enter(full, program(kOne, 0));
  const auto good = to_text(full);
  const auto refused = [](const std::string& text) {
    std::string why;
    EXPECT_FALSE(parse_window(text, &why)) << text;
    EXPECT_FALSE(why.empty());
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    auto text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  // Up to its last word, which may be shorter.
  for (std::size_t length = 0; length <= good.size() - std::string("worker").size(); ++length) {
    EXPECT_FALSE(parse_window(good.substr(0, length))) << length;
  }
  refused(good + "\n");
  refused(with("dlock-window1", "dlock-window2"));
  refused(with("hi=1", "hi=2"));        // lo=0
  refused(with("lo=0", "lo=2"));        // above hi
  refused(with("beat=18", "beat=99"));  // above seq
  refused(with("programs=1", "programs=2"));
  refused(with("floor=1000", "floor=01000"));
  refused(with(kOne, "00000000_0001"));
  refused(with("app=worker", "app="));
}

TEST(DualWindow, FiveHundredProgramsFitAndNotOneMore) {
  auto full = window();
  full.seq = 999'999'990'000;
  for (std::size_t i = 0; i < kMostPrograms; ++i) {
    char id[14];
    std::snprintf(id, sizeof id, "%08zx-ffff", i);
    auto one = program(id, 0);
    one.top = 9'007'199'254'740'990;
    one.pid = 9'999'999'999;
    one.host = std::string(64, 'h');
    one.app = std::string(64, 'a');
    ASSERT_EQ(enter(full, one), Entry::entered);
  }
  EXPECT_EQ(enter(full, program("ffffffff-ffff", 0)), Entry::full);
  EXPECT_EQ(enter(full, program("00000000-ffff", 0)), Entry::entered);  // again, in its place
  EXPECT_LE(to_text(full).size(), kLongestWindow);
  EXPECT_EQ(parse_window(to_text(full)), full);
}

TEST(DualWindow, OnlyAnAdmittedPhaseRegisters) {
  auto now = window();
  const auto before = now;
  EXPECT_EQ(enter(now, program(kOne, 2)), Entry::not_admitted);
  EXPECT_EQ(now, before);
  EXPECT_EQ(enter(now, program(kOne, 1)), Entry::entered);
  EXPECT_EQ(now.seq, 18U);
  EXPECT_EQ(now.find(kOne)->beat, 18U);
  now.lo = now.hi = 0;
  EXPECT_EQ(laggards(now).size(), 1U);
  // It goes on until it is restarted; it does not come back.
  EXPECT_TRUE(renew(now, kOne, 0));
  EXPECT_TRUE(leave(now, kOne));
  EXPECT_EQ(enter(now, program(kOne, 1)), Entry::not_admitted);
}

TEST(DualWindow, EachChangeHasAnotherText) {
  auto now = window();
  enter(now, program(kOne, 0));
  const auto first = to_text(now);
  leave(now, kOne);
  enter(now, program(kOne, 0));
  EXPECT_NE(to_text(now), first);
  const auto second = to_text(now);
  renew(now, kOne, 0);
  EXPECT_NE(to_text(now), second);
}

TEST(DualWindow, TheHighestTokenOutlivesWhoGaveIt) {
  auto now = window();
  enter(now, program(kOne, 0));
  EXPECT_TRUE(renew(now, kOne, 5000));
  EXPECT_TRUE(renew(now, kOne, 4000));
  EXPECT_EQ(now.highest_token(), 5000U);
  EXPECT_TRUE(leave(now, kOne));
  EXPECT_FALSE(leave(now, kOne));
  EXPECT_FALSE(renew(now, kOne, 9000));
  EXPECT_EQ(now.highest_token(), 5000U);
}

TEST(DualWindow, AClaimNamesItsProgram) {
  const auto id = program_id("0123abcd-4567-4abc-8abc-0123456789ab");
  EXPECT_EQ(id, "0123abcd-4567");
  EXPECT_TRUE(is_claim_of("0123abcd-4567-4fff-8fff-ffffffffffff", id));
  EXPECT_FALSE(is_claim_of("0123abcd-4568-4fff-8fff-ffffffffffff", id));
  EXPECT_TRUE(is_claim_of("_c_0123abcd-4567-4fff-8fff-ffffffffffff-lock-0000000007", id));
  EXPECT_FALSE(is_claim_of("anything", ""));
  EXPECT_EQ(coordinator_id("0123456789abcdef"), "01234567-89ab");
}

TEST(DualWindow, AProgramInAPidNamespaceIsShownWithoutAPid) {
  auto made = program(kOne, 2);
  EXPECT_EQ(describe(made), "worker (pid 4711 on h, phase 2)");
  made.pid = 0;
  EXPECT_EQ(describe(made), "worker (in a pid namespace on h, phase 2)");
}

TEST(DualWindow, ForeignWordsCannotBreakTheText) {
  auto now = window();
  auto odd = program(kOne, 0);
  odd.host = "a host\nprograms=9";
  odd.app = "";
  odd.pid = -1;
  ASSERT_EQ(enter(now, odd), Entry::entered);
  EXPECT_EQ(now.find(kOne)->host, "a_host_programs=9");
  EXPECT_EQ(now.find(kOne)->app, "-");
  EXPECT_EQ(parse_window(to_text(now)), now);
}

class DualWatch : public testing::Test {
 protected:
  DualWatch() { enter(window_, program(kOne, 0)); }
  void see(Duration after) {
    watch_.see(window_, start_ + after, start_ + after + milliseconds(1));
  }
  bool is_over() const { return watch_.is_over(*window_.find(kOne)); }

  Window window_ = window();
  WindowWatch watch_;
  const TimePoint start_{std::chrono::hours(1)};
};

TEST_F(DualWatch, ARegistrationIsOverWhenItsBeatStoodStillForALeaseAndAMargin) {
  EXPECT_FALSE(is_over());  // never seen
  see({});
  EXPECT_FALSE(is_over());
  see(seconds(3));
  EXPECT_FALSE(is_over());
  see(WindowWatch::patience(seconds(3)));  // the answer with it came a little later
  EXPECT_FALSE(is_over());
  see(WindowWatch::patience(seconds(3)) + milliseconds(1));
  EXPECT_TRUE(is_over());
  EXPECT_EQ(watch_.over(), std::vector{kOne});
}

TEST_F(DualWatch, AnotherBeatBeginsAnew) {
  see({});
  renew(window_, kOne, 0);
  see(seconds(4));
  EXPECT_FALSE(is_over());
  see(seconds(7));
  EXPECT_FALSE(is_over());
  see(seconds(8));
  EXPECT_TRUE(is_over());
}

TEST_F(DualWatch, ALongSilenceOfTheObserverProvesNothing) {
  see({});
  // It was not asked for a minute; the answer that it then has may be of the moment.
  renew(window_, kOne, 0);
  see(seconds(60));
  EXPECT_FALSE(is_over());
}

TEST_F(DualWatch, TheProgramStopsBelievingBeforeAnybodyElseSaysSo) {
  const auto lease = seconds(3);
  EXPECT_LT(WindowWatch::believed_until(start_, lease), start_ + lease);
  EXPECT_GT(WindowWatch::patience(lease), Duration(lease));
}

TEST_F(DualWatch, AWindowOfAnotherLifeIsSeenForTheFirstTime) {
  see({});
  window_.born = "0000000000000001";
  see(seconds(60));
  EXPECT_FALSE(is_over());
}

}  // namespace
}  // namespace dlock::core::migration
