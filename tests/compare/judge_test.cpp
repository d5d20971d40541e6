// SPDX-License-Identifier: Apache-2.0
//
// Histories in which a promise is kept or broken, and what the suite makes of them.
#include "compare/suite/judge.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace dlock::compare {
namespace {

using checkers::Event;
using checkers::EventKind;

TimePoint at(int milliseconds) { return TimePoint(std::chrono::milliseconds(milliseconds)); }

Event event(int when, EventKind kind, const char* client, checkers::GrantId grant = 0,
            std::optional<std::uint64_t> token = {}, TimePoint until = kNever) {
  return {at(when), kind, "lock", client, grant, Mode::exclusive, token, until};
}

boost::json::object declared(const char* guarantee, bool fair, const char* token,
                             const char* wake_up = "poll") {
  return {{"guarantee", guarantee}, {"fair", fair}, {"token", token}, {"wake_up", wake_up}};
}

std::size_t complaints(Outcome outcome, const boost::json::object& promise) {
  const auto judged = judge(outcome);
  return contradictions(outcome, judged, promise).size();
}

Outcome two_holders() {
  Outcome outcome;
  outcome.history = {event(0, EventKind::wanted, "A"), event(1, EventKind::granted, "A", 1, 5),
                     event(2, EventKind::wanted, "B"), event(10, EventKind::granted, "B", 2, 6),
                     event(40, EventKind::told_lost, "A", 1)};
  return outcome;
}

TEST(Judge, TwoHoldersContradictExclusiveAndNotBestEffort) {
  EXPECT_EQ(complaints(two_holders(), declared("exclusive", true, "durable")), 1U);
  EXPECT_EQ(complaints(two_holders(), declared("best_effort", true, "durable")), 0U);
}

TEST(Judge, TheOverlapLastsUntilTheFirstIsTold) {
  auto outcome = two_holders();
  EXPECT_DOUBLE_EQ(judge(outcome).at("values").at("overlap_ms").to_number<double>(), 30);
}

TEST(Judge, ADeadlineThatHasPassedIsNoOverlap) {
  Outcome outcome;
  outcome.history = {event(1, EventKind::granted, "A", 1, 5, at(8)),
                     event(10, EventKind::granted, "B", 2, 6)};
  EXPECT_EQ(complaints(outcome, declared("exclusive", false, "durable")), 0U);
}

TEST(Judge, AFallingTokenContradicts) {
  Outcome outcome;
  outcome.history = {event(1, EventKind::granted, "A", 1, 6),
                     event(2, EventKind::releasing, "A", 1),
                     event(3, EventKind::granted, "B", 2, 5)};
  EXPECT_EQ(complaints(outcome, declared("exclusive", false, "durable")), 1U);
  EXPECT_EQ(complaints(outcome, declared("exclusive", false, "none")), 0U);
}

TEST(Judge, WhoIsPassedOverContradictsFirstComeFirstServed) {
  Outcome outcome;
  outcome.history = {event(1, EventKind::wanted, "B"), event(2, EventKind::wanted, "C"),
                     event(3, EventKind::granted, "C", 1, 1)};
  EXPECT_EQ(complaints(outcome, declared("exclusive", true, "durable")), 1U);
  EXPECT_EQ(complaints(outcome, declared("exclusive", false, "durable")), 0U);
  // ... but not when it was cut off.
  outcome.history.insert(outcome.history.begin() + 2, event(2, EventKind::faulted, "B"));
  EXPECT_EQ(complaints(outcome, declared("exclusive", true, "durable")), 0U);
}

TEST(Judge, AStaleWriteIsStoppedByTheTokenOnceTheNewerHasWritten) {
  auto outcome = two_holders();
  outcome.writes = {{at(5), 1, 5}, {at(15), 2, 6}, {at(20), 1, 5}};
  const auto judged = judge(outcome);
  EXPECT_EQ(judged.at("values").at("stale_writes").to_number<int>(), 1);
  EXPECT_EQ(judged.at("values").at("stale_writes_fenced").to_number<int>(), 0);
  outcome.writes.back().token = 7;
  EXPECT_EQ(judge(outcome).at("values").at("stale_writes_fenced").to_number<int>(), 1);
}

TEST(Judge, WhoIsToldLateOfAReleaseContradictsAPush) {
  Outcome outcome;
  outcome.history = {event(0, EventKind::wanted, "A"), event(0, EventKind::granted, "A", 1, 5),
                     event(1, EventKind::wanted, "B"), event(100, EventKind::releasing, "A", 1),
                     event(1200, EventKind::granted, "B", 2, 6)};
  EXPECT_EQ(complaints(outcome, declared("exclusive", true, "durable", "push")), 1U);
  EXPECT_EQ(complaints(outcome, declared("exclusive", true, "durable", "poll")), 0U);
  EXPECT_EQ(judge(outcome).at("values").at("wake_up_ms").as_double(), 1100);
  // ... but where something was broken, it takes as long as it takes.
  outcome.history.insert(outcome.history.begin(), event(0, EventKind::faulted, ""));
  EXPECT_EQ(complaints(outcome, declared("exclusive", true, "durable", "push")), 0U);
}

TEST(Judge, ToldTwiceContradicts) {
  auto outcome = two_holders();
  outcome.history.push_back(event(50, EventKind::told_lost, "A", 1));
  EXPECT_EQ(complaints(outcome, declared("best_effort", false, "durable")), 1U);
}

TEST(Judge, WhatWasWaitedForInVainContradicts) {
  Outcome outcome;
  outcome.missed = {"B was never granted the lock"};
  EXPECT_EQ(complaints(outcome, declared("best_effort", false, "none")), 1U);
}

}  // namespace
}  // namespace dlock::compare
