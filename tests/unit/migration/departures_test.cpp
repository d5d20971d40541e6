// SPDX-License-Identifier: Apache-2.0
//
// What a finished plan has left behind, and what brings it back.
#include "migration/departures.hpp"

#include <gtest/gtest.h>

#include "migration/ledger.hpp"
#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::Departures;
using core::migration::Ledger;
using core::migration::Plan;

class DeparturesTest : public testing::Test {
 protected:
  static Plan plan(const std::string& name, bool back, std::vector<std::string> patterns) {
    Plan made;
    made.name = name;
    made.id = "0123456789abcdef";
    made.from = back ? "t" : "s";
    made.to = back ? "s" : "t";
    made.gate = "t";
    made.lease = std::chrono::seconds(10);
    made.patterns = std::move(patterns);
    return made;
  }
  const std::shared_ptr<core::Store>& from(const Plan& one) {
    return one.from == "s" ? two_.s : two_.t;
  }
  const std::shared_ptr<core::Store>& to(const Plan& one) {
    return one.from == "s" ? two_.t : two_.s;
  }

  /// As `start` and `finish` do it.
  void finish(const Plan& one) {
    Ledger ledger(from(one), to(one));
    EXPECT_FALSE(
        two_.run(ledger.write(from(one), core::migration::plan_key(one.name), to_text(one))).error);
    EXPECT_FALSE(
        two_.run(ledger.write(to(one), core::migration::home_key(one.name), to_text(one))).error);
    Departures departures(from(one), to(one));
    EXPECT_FALSE(two_.run(departures.note(one)).error);
  }
  Failure objection(const Plan& one) {
    Departures departures(from(one), to(one));
    return two_.run(departures.objection(one));
  }
  void forget(const std::shared_ptr<core::Store>& store) {
    Ledger ledger(two_.s, two_.t);
    for (const std::string key : {"plans-left", "plans-came"})
      EXPECT_FALSE(two_.run(ledger.erase(store, key)).error);
  }

  TwoStores two_;
};

TEST_F(DeparturesTest, WhatHasLeftDoesNotBeginThereAgainUnlessAllOfItIsBack) {
  EXPECT_FALSE(objection(plan("b", false, {"x/**"})).error);
  finish(plan("a", false, {"x/**", "y/1"}));
  for (const auto& again :
       {plan("b", false, {"x/**"}), plan("b", false, {"x/1/**"}), plan("b", false, {"x/7"}),
        plan("b", false, {"y/1"}), plan("b", false, {"**"})}) {
    const auto failure = objection(again);
    EXPECT_EQ(failure.error, errc::config_unsafe) << to_text(again);
    EXPECT_NE(failure.text.find("plan 'a' has taken"), std::string::npos) << failure.text;
  }
  EXPECT_FALSE(objection(plan("b", false, {"y/2", "z/**"})).error);
  EXPECT_FALSE(objection(plan("back", true, {"x/**", "y/1"})).error);

  finish(plan("part", true, {"x/**"}));
  finish(plan("rest", true, {"x/1/**", "y/1"}));
  EXPECT_EQ(objection(plan("b", false, {"x/**"})).error, errc::config_unsafe);
  finish(plan("back", true, {"x/**", "y/1"}));
  EXPECT_FALSE(objection(plan("b", false, {"x/**", "y/1"})).error);
  // They are in the source now, and leave it by a plan of their own.
  EXPECT_EQ(objection(plan("c", true, {"x/**"})).error, errc::config_unsafe);
}

TEST_F(DeparturesTest, OneStoreMayForget) {
  finish(plan("a", false, {"x/**"}));
  forget(two_.s);
  EXPECT_EQ(objection(plan("b", false, {"x/**"})).error, errc::config_unsafe);
  finish(plan("d", false, {"w/**"}));
  forget(two_.t);
  EXPECT_EQ(objection(plan("b", false, {"w/**"})).error, errc::config_unsafe);
}

}  // namespace
}  // namespace dlock::tests
