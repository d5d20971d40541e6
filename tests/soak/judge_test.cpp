// SPDX-License-Identifier: Apache-2.0
//
// The judge of a soak finds what is wrong, and leaves out what the store's word leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/soak/records.hpp"

namespace dlock::soak {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

TimePoint at(std::chrono::milliseconds when) { return TimePoint(1h + when); }

/// Two workers, one lock.
class SoakJudge : public testing::Test {
 protected:
  SoakJudge() {
    records_.end = at(60s);
    terms_.lease = 2s;
    terms_.progress_bound = 20s;
  }
  void granted(int worker, std::chrono::milliseconds when, std::uint64_t token,
               std::chrono::milliseconds until) {
    records_.lines[worker].push_back({at(when), Note::granted, 0, 1, token, at(until), "x"});
  }
  void note(Note what, int worker, std::chrono::milliseconds when) {
    records_.lines[worker].push_back({at(when), what, 0, 1, 0, kNever, "-"});
  }
  /// Granted for a lease, and given back.
  void held(int worker, std::chrono::milliseconds from, std::uint64_t token,
            std::chrono::milliseconds until) {
    granted(worker, from, token, from + 2s);
    note(Note::releasing, worker, until);
  }
  std::vector<std::string> violations() {
    std::vector<std::string> all;
    for (const auto& one : judge(records_, terms_).violations) all.push_back(one.what);
    return all;
  }
  void expect_violation(const std::string& text) {
    EXPECT_THAT(violations(), testing::Contains(HasSubstr(text)));
  }

  Records records_;
  Terms terms_;
};

TEST_F(SoakJudge, HasNothingToSayOfWhatGoesWell) {
  held(1, 0ms, 7, 100ms);
  held(2, 101ms, 8, 200ms);
  records_.writes["x"] = {{at(50ms), 1, 1, 7, true}, {at(150ms), 2, 1, 8, true}};
  EXPECT_THAT(violations(), IsEmpty());
  EXPECT_EQ(judge(records_, terms_).acquisitions, 2U);
}

TEST_F(SoakJudge, FindsTwoHolders) {
  granted(1, 0ms, 7, 2000ms);
  granted(2, 100ms, 8, 2100ms);
  note(Note::releasing, 1, 200ms);
  note(Note::releasing, 2, 300ms);
  expect_violation("while worker 1/0 holds it");
}

TEST_F(SoakJudge, CountsTwoHoldersThatTheStoresWordLeavesOut) {
  granted(1, 0ms, 7, 2000ms);
  granted(2, 100ms, 8, 2100ms);
  note(Note::told_lost, 1, 200ms);
  note(Note::releasing, 2, 300ms);
  records_.struck.push_back({"server killed", at(50ms), at(60ms)});
  expect_violation("while worker 1/0 holds it");
  terms_.exclusive = false;
  terms_.excepted = {"server killed"};
  EXPECT_THAT(violations(), IsEmpty());
  EXPECT_EQ(judge(records_, terms_).excepted["server killed"], 1U);
  // ... but not one that goes on renewing.
  records_.lines[1].insert(records_.lines[1].begin() + 1,
                           {at(180ms), Note::extended, 0, 1, 0, at(2180ms), "-"});
  expect_violation("goes on renewing");
}

TEST_F(SoakJudge, ExcusesAGrantThatWasOverWhenItsStoppedProcessWroteItDown) {
  held(2, 2400ms, 8, 2600ms);
  granted(1, 3000ms, 7, 2000ms);
  note(Note::told_lost, 1, 3000ms);
  expect_violation("was over when it came");
  records_.stops.push_back({1, at(500ms), at(2999ms)});
  EXPECT_THAT(violations(), IsEmpty());
  // Not one that is not over.
  records_.lines[1][0].until = at(4000ms);
  expect_violation("has token 7, after 8");
}

TEST_F(SoakJudge, FindsWhoIsToldAfterTheNextOneHolds) {
  granted(1, 0ms, 7, 2000ms);
  note(Note::told_lost, 1, 2500ms);
  held(2, 2400ms, 8, 2600ms);
  expect_violation("after the next one held it");
  EXPECT_EQ(judge(records_, terms_).lateness, std::vector<Duration>{500ms});
  // Nobody can be told while it is stopped.
  records_.stops.push_back({1, at(1000ms), at(2490ms)});
  EXPECT_THAT(violations(), IsEmpty());
  EXPECT_THAT(judge(records_, terms_).lateness, IsEmpty());
}

TEST_F(SoakJudge, WhoWasHeldUpByTheMachineIsNotToldLateByUs) {
  granted(1, 0ms, 7, 2000ms);
  note(Note::told_lost, 1, 6600ms);
  held(2, 2400ms, 8, 2600ms);
  records_.lines[1].push_back({at(1900ms), Note::held_up, 0, 0, 0, at(6500ms), "-"});
  EXPECT_THAT(violations(), IsEmpty());
  // ... but what is left of the time must be before the next one.
  records_.lines[1].back().until = at(6100ms);
  expect_violation("after the next one held it");
}

TEST_F(SoakJudge, KnowsTheMachinesLatenessFromOurs) {
  granted(1, 0ms, 7, 2000ms);
  note(Note::told_lost, 1, 2030ms);
  records_.lines[1].push_back({at(1990ms), Note::held_up, 0, 0, 0, at(2025ms), "-"});
  const auto judgement = judge(records_, terms_);
  EXPECT_EQ(judgement.lateness, std::vector<Duration>{30ms});
  EXPECT_EQ(judgement.own_lateness, std::vector<Duration>{5ms});
}

TEST_F(SoakJudge, OneLossInAThousandMayBeToldLate) {
  std::vector<Duration> lateness(2000, 1ms);
  EXPECT_TRUE(told_in_time(lateness, 10ms));
  lateness[1999] = lateness[1998] = 50ms;
  EXPECT_TRUE(told_in_time(lateness, 10ms));
  lateness[1997] = 11ms;
  EXPECT_FALSE(told_in_time(lateness, 10ms));
  EXPECT_TRUE(told_in_time({1ms, 20ms}, 10ms));
  EXPECT_FALSE(told_in_time({20ms, 20ms}, 10ms));
}

TEST_F(SoakJudge, FindsTokensAndWritesThatGoBack) {
  held(1, 0ms, 8, 100ms);
  held(2, 101ms, 7, 200ms);
  expect_violation("has token 7, after 8");
  records_.writes["x"] = {{at(50ms), 1, 1, 8, true}, {at(150ms), 2, 1, 7, true}};
  EXPECT_GE(violations().size(), 2U);
}

TEST_F(SoakJudge, FindsALockThatNobodyIsGranted) {
  records_.lines[1].push_back({at(0ms), Note::wanted, 0, 0, 0, kNever, "x"});
  expect_violation("is free and wanted");
}

TEST_F(SoakJudge, FindsWhatAWorkerFoundOdd) {
  records_.lines[1].push_back({at(0ms), Note::odd, 0, 0, 0, kNever, "held after its deadline"});
  expect_violation("held after its deadline");
}

TEST_F(SoakJudge, WhatAKilledWorkerDidInItsLastMomentDoesNotCount) {
  granted(1, 0ms, 7, 2000ms);
  records_.deaths.push_back({1, at(100ms)});
  note(Note::releasing, 1, 101ms);
  granted(2, 150ms, 8, 2100ms);
  note(Note::releasing, 2, 200ms);
  EXPECT_THAT(violations(), IsEmpty());
}

}  // namespace
}  // namespace dlock::soak
