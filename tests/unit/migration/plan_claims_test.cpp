// SPDX-License-Identifier: Apache-2.0
//
// Who may claim in a plan's target: those who mean the store that it was started with, and nobody
// where its plans cannot be read.
#include "migration/policy/plan_claims.hpp"

#include <gtest/gtest.h>

#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

class PlanClaims : public testing::Test {
 protected:
  /// A claim in T of somebody whose records say that the plan has this id.
  error_code claim_with(const std::string& id) {
    auto outcome = std::make_shared<Outcome>();
    core::Acquisition::Request request;
    request.name = "a";
    request.limits = limits_of(stores_.env(), std::chrono::milliseconds(0));
    request.policy = core::migration::target_claims(*stores_.t, {"p1", id, "s"});
    stores_.t->acquire(std::make_shared<core::Acquisition>(stores_.t, std::move(request),
                                                           write_down(stores_.env(), outcome)));
    stores_.run_for(std::chrono::seconds(1));
    EXPECT_EQ(outcome->times_told, 1);
    return outcome->ec;
  }

  TwoStores stores_;
};

TEST_F(PlanClaims, AnotherStartOfThePlanIsNoStartOfThisStore) {
  EXPECT_EQ(claim_with("fedcba9876543210"), errc::config_unsafe);
  EXPECT_FALSE(claim_with(stores_.plan.id));
}

TEST_F(PlanClaims, WhatOneStartWasToldIsNotTheAnswerForAnother) {
  EXPECT_FALSE(claim_with(stores_.plan.id));
  EXPECT_EQ(claim_with("fedcba9876543210"), errc::config_unsafe);
}

TEST_F(PlanClaims, WhereAPlanCannotBeReadNobodyLocksWhoKnowsTheTargetAlone) {
  stores_.server_t->set_note("plan/p1", core::migration::to_text(stores_.plan), "rubbish");
  const auto got = stores_.acquire_in(stores_.t, "a name of no plan");
  stores_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_NE(got->diagnostics.server_text.find("cannot be read"), std::string::npos)
      << got->diagnostics.server_text;
}

}  // namespace
}  // namespace dlock::tests
