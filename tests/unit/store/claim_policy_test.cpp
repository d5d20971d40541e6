// SPDX-License-Identifier: Apache-2.0
//
// What an Acquisition asks of its ClaimPolicy, and what comes of each answer.
#include "core/store/claim_policy.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using std::chrono::seconds;

/// Says what its test wants, and counts what it was asked.
class ScriptedPolicy final : public core::ClaimPolicy {
 public:
  asio::awaitable<Admission> admit(std::string) override {
    if (++admissions == throws_at) throw std::runtime_error("no admission");
    co_return admission;
  }
  asio::awaitable<Confirmation> confirm(std::string, std::optional<std::uint64_t> token) override {
    confirmed.push_back(token.value_or(0));
    const auto said = confirmation;
    confirmation = {};
    co_return said;
  }
  void prepare(ClaimRequest& request) const override { request.owner.id = "prepared"; }
  asio::awaitable<bool> open(std::string, std::string record) override {
    opened.push_back(std::move(record));
    co_return opens;
  }
  Failure sealed(std::string_view record, std::string_view name) const override {
    return make_failure(errc::moving, std::string(name) + " is at " + std::string(record));
  }

  int throws_at = 0;
  Admission admission;
  Confirmation confirmation;  ///< of the first grant
  bool opens = false;
  int admissions = 0;
  std::vector<std::uint64_t> confirmed;
  std::vector<std::string> opened;
};

class ClaimPolicyTest : public testing::Test {
 protected:
  std::shared_ptr<StoreFixture::Outcome> acquire(
      std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    return fixture_.acquire(wait, "a", [&](core::Acquisition::Request& request) {
      request.policy = policy_;
      request.diagnostics = &diagnostics_;
    });
  }
  void answer_first(ClaimStatus status, std::string record = {}) {
    ClaimAnswer answer;
    answer.status = status;
    answer.record = std::move(record);
    fixture_.script().claims.push_back({std::move(answer), {}});
  }
  Script& script() { return fixture_.script(); }

  StoreFixture fixture_;
  const std::shared_ptr<ScriptedPolicy> policy_ = std::make_shared<ScriptedPolicy>();
  Diagnostics diagnostics_;
};

TEST_F(ClaimPolicyTest, WhatIsNotAdmittedIsNotAskedFor) {
  policy_->admission.failure = make_failure(errc::config_unsafe, "somebody else's");
  const auto got = acquire();
  fixture_.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_EQ(diagnostics_.server_text, "somebody else's");
  EXPECT_EQ(script().claim_calls, 0);
}

TEST_F(ClaimPolicyTest, SaysWhatGoesWithTheClaim) {
  const auto got = acquire();
  fixture_.env().run_for(seconds(1));
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(script().granted.at(0)->request().owner.id, "prepared");
  EXPECT_TRUE(policy_->confirmed.empty()) << "it was not admitted provisionally";
}

TEST_F(ClaimPolicyTest, AProvisionalGrantThatIsRefusedIsGivenBack) {
  policy_->admission.is_provisional = true;
  policy_->confirmation.failure = make_failure(errc::config_unsafe, "not any more");
  const auto got = acquire();
  fixture_.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_EQ(diagnostics_.server_text, "not any more");
  EXPECT_EQ(policy_->confirmed, std::vector<std::uint64_t>{1});
  EXPECT_EQ(script().release_searches, std::vector<bool>{false});
}

TEST_F(ClaimPolicyTest, AStaleGrantIsTakenAnewWithAnotherClaim) {
  policy_->admission.is_provisional = true;
  policy_->confirmation.is_stale = true;
  const auto got = acquire();
  fixture_.env().run_for(seconds(1));
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(got->handle.token(), 2U);
  ASSERT_EQ(script().granted.size(), 2U);
  EXPECT_NE(script().granted[0], script().granted[1]);
  EXPECT_EQ(script().release_searches, std::vector<bool>{false}) << "the first one was given back";
}

TEST_F(ClaimPolicyTest, AGrantThatCannotBeConfirmedIsAskedForAgain) {
  policy_->admission.is_provisional = true;
  policy_->confirmation.failure = make_failure(errc::unavailable, "no answer");
  const auto got = acquire();
  fixture_.env().run_for(seconds(5));
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(got->times_told, 1);
  EXPECT_EQ(policy_->confirmed, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(ClaimPolicyTest, WhatStandsInTheLocksPlaceIsToldOrOpened) {
  answer_first(ClaimStatus::sealed, "elsewhere");
  auto got = acquire();
  fixture_.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::moving);
  EXPECT_EQ(diagnostics_.server_text, "a is at elsewhere");
  policy_->opens = true;
  answer_first(ClaimStatus::sealed, "left");
  got = acquire();
  fixture_.env().run_for(seconds(1));
  EXPECT_TRUE(got->handle);
  EXPECT_EQ(policy_->opened, (std::vector<std::string>{"elsewhere", "left"}));
}

TEST_F(ClaimPolicyTest, AWaitingClaimIsWithdrawnWhenThePolicyThrows) {
  policy_->throws_at = 2;
  answer_first(ClaimStatus::waiting);
  const auto got = acquire();
  fixture_.env().run_for(seconds(1));
  EXPECT_FALSE(got->told);
  script().wake();
  fixture_.env().run_for(seconds(1));
  EXPECT_EQ(got->times_told, 1);
  EXPECT_TRUE(got->ec);
  EXPECT_FALSE(got->handle);
  EXPECT_FALSE(script().release_searches.empty()) << "the claim stays in the line";
}

}  // namespace
}  // namespace dlock::tests
