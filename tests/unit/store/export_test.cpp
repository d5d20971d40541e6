// SPDX-License-Identifier: Apache-2.0
//
// When a grant leaves its process: not before the store knows, and not a moment after the text.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "dlock/detail/grant.hpp"
#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Exporting {
  bool told = false;
  error_code ec;
  std::string text;
  HandleState state = HandleState::held;  ///< when it was told
};

class StoreExport : public ::testing::Test {
 protected:
  void SetUp() override {
    got_ = fixture_.acquire();
    env().run_for(milliseconds(1));
    ASSERT_TRUE(got_->handle);
  }
  std::shared_ptr<Exporting> start(milliseconds within = seconds(20)) {
    auto exporting = std::make_shared<Exporting>();
    const auto grant = detail::GrantAccess::grant(got_->handle);
    grant->export_grant(within, [exporting, grant](error_code ec, std::string text) {
      *exporting = {true, ec, std::move(text), grant->state()};
    });
    return exporting;
  }
  VirtualEnv& env() { return fixture_.env(); }
  Script& script() { return fixture_.script(); }
  LockHandle& handle() { return got_->handle; }

  StoreFixture fixture_;
  std::shared_ptr<StoreFixture::Outcome> got_;
};

TEST_F(StoreExport, ItIsBelievedUntilTheStoreKnowsAndNoLonger) {
  script().offers.push_back({{}, milliseconds(500)});
  const auto exporting = start();
  env().run_for(milliseconds(499));
  EXPECT_FALSE(exporting->told);
  EXPECT_EQ(handle().state(), HandleState::held);
  env().run_for(milliseconds(2));
  ASSERT_TRUE(exporting->told);
  EXPECT_FALSE(exporting->ec);
  EXPECT_FALSE(exporting->text.empty());
  EXPECT_EQ(exporting->state, HandleState::released) << "before the text is there";
}

TEST_F(StoreExport, ItIsRenewedUntilItsTimeIsOverAndThenGivenBack) {
  const auto exporting = start(seconds(20));
  env().run_for(milliseconds(19'900));
  EXPECT_FALSE(exporting->ec);
  EXPECT_EQ(script().extend_times.size(), 6U);
  EXPECT_TRUE(script().release_searches.empty());
  env().run_for(milliseconds(200));
  EXPECT_EQ(script().release_searches.size(), 1U);
  env().run_for(seconds(60));
  EXPECT_EQ(script().extend_times.size(), 6U);
  EXPECT_EQ(script().release_searches.size(), 1U);
}

TEST_F(StoreExport, WhatAnotherHasByNowIsNotGivenBack) {
  start(seconds(20));
  ExtendAnswer taken;
  taken.status = ExtendStatus::gone;
  taken.reason = LossReason::taken;
  script().extends.push_back({taken, {}});
  int told = 0;
  handle().on_state([&told](HandleState, LossReason) { ++told; });
  env().run_for(seconds(60));
  EXPECT_EQ(script().extend_times.size(), 1U);
  EXPECT_TRUE(script().release_searches.empty());
  EXPECT_EQ(told, 0) << "it is no loss";
}

TEST_F(StoreExport, WhatFailsLeavesItAsItWasAndIsTriedAgainWithTheSameProof) {
  script().offers.push_back({make_failure(errc::unavailable, "no answer"), milliseconds(100)});
  const auto first = start();
  env().run_for(milliseconds(200));
  EXPECT_EQ(first->ec, errc::unavailable);
  EXPECT_EQ(first->text, "no answer");
  EXPECT_EQ(handle().state(), HandleState::held);
  const auto second = start();
  env().run_for(milliseconds(100));
  EXPECT_FALSE(second->ec);
  ASSERT_EQ(script().proofs.size(), 2U);
  EXPECT_EQ(script().proofs[0], script().proofs[1]);
}

TEST_F(StoreExport, AGrantThatIsGoneIsLost) {
  script().offers.push_back({make_failure(errc::not_holder, ""), {}});
  const auto exporting = start();
  env().run_for(milliseconds(1));
  EXPECT_EQ(exporting->ec, errc::lock_lost);
  EXPECT_EQ(handle().state(), HandleState::lost);
  EXPECT_EQ(handle().loss_reason(), LossReason::removed);
}

TEST_F(StoreExport, OneThatIsLostMeanwhileGivesNoText) {
  script().offers.push_back({{}, milliseconds(500)});
  const auto exporting = start();
  env().run_for(milliseconds(100));
  script().sink->on_claim_gone(script().granted.front(), LossReason::broken);
  env().run_for(seconds(1));
  ASSERT_TRUE(exporting->told);
  EXPECT_EQ(exporting->ec, errc::lock_lost);
  EXPECT_NE(exporting->text.find("broken"), std::string::npos);
  EXPECT_EQ(handle().state(), HandleState::lost);
}

TEST_F(StoreExport, AClosedStoreGivesItBack) {
  const auto exporting = start();
  env().run_for(milliseconds(10));
  EXPECT_FALSE(exporting->ec);
  asio::co_spawn(env().executor(), fixture_.store->close(), asio::detached);
  env().run_for(seconds(1));
  EXPECT_EQ(script().release_searches.size(), 1U);
  const auto late = start();
  env().run_for(milliseconds(10));
  EXPECT_EQ(late->ec, errc::closed);
}

}  // namespace
}  // namespace dlock::tests
