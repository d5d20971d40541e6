// SPDX-License-Identifier: Apache-2.0
//
// The Mailer when things go wrong with its lock, which a store of the test's own does on command.
#include "mailer.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "dlock/testing/fake_lock.hpp"
#include "dlock/testing/store.hpp"

namespace {

using namespace std::chrono_literals;
using Outcome = Mailer::Outcome;

struct NotedPost final : Post {
  void send(const std::string& letter, std::uint64_t token) override {
    letters.push_back(letter);
    tokens.push_back(token);
    if (meanwhile) meanwhile();
  }
  std::vector<std::string> letters;
  std::vector<std::uint64_t> tokens;
  std::function<void()> meanwhile;
};

class MailerTest : public ::testing::Test {
 protected:
  dlock::testing::Store store;
  dlock::LockManager locks = store.open();
  NotedPost post;
  Mailer mailer{locks.lock("mail"), post};
};

TEST_F(MailerTest, PassesItsTokenOn) {
  store.tokens_from(41);
  const auto report = mailer.send({"one", "two"});
  EXPECT_EQ(report.outcome, Outcome::sent);
  EXPECT_EQ(post.tokens, (std::vector<std::uint64_t>{41, 41}));
  EXPECT_FALSE(store.held("mail")) << "the lock was given back";
}

TEST_F(MailerTest, StopsWhenTheLockIsLost) {
  post.meanwhile = [this] { store.lose("mail", dlock::LossReason::expired); };
  const auto report = mailer.send({"one", "two", "three"});
  EXPECT_EQ(report.outcome, Outcome::lock_lost);
  EXPECT_EQ(post.letters, std::vector<std::string>{"one"});
}

TEST_F(MailerTest, HearsOfALossAfterTheLastLetter) {
  post.meanwhile = [this] { store.lose("mail"); };
  EXPECT_EQ(mailer.send({"one"}).outcome, Outcome::lock_lost);
}

TEST_F(MailerTest, GoesOnWhileTheStoreIsOutOfReachForAMoment) {
  post.meanwhile = [this] { store.out_of_reach(); };
  EXPECT_EQ(mailer.send({"one", "two"}).sent, 2U) << "the lease is not over";
  store.reachable();
}

TEST_F(MailerTest, LeavesTheWorkToWhoeverHasTheLock) {
  ASSERT_TRUE(store.hold("mail"));
  EXPECT_EQ(mailer.send({"one"}).outcome, Outcome::not_our_turn);
  EXPECT_TRUE(post.letters.empty());
  store.let_go("mail");
  EXPECT_EQ(mailer.send({"one"}).outcome, Outcome::sent);
}

TEST_F(MailerTest, ReportsWhatTheStoreRefuses) {
  store.refuse(dlock::errc::access_denied, "no write permission below /mail", 1);
  const auto report = mailer.send({"one"});
  EXPECT_EQ(report.outcome, Outcome::failed);
  EXPECT_NE(report.problem.find("no write permission"), std::string::npos) << report.problem;
  EXPECT_EQ(mailer.send({"one"}).outcome, Outcome::sent) << "the next time it is allowed";
}

TEST_F(MailerTest, DoesNotWaitForASlowStore) {
  store.delay(1h);
  const auto report = mailer.send({"one"});
  EXPECT_EQ(report.outcome, Outcome::failed) << "nobody knows whose turn it is";
  EXPECT_NE(report.problem.find("did not answer"), std::string::npos) << report.problem;
  store.delay(0ms);
  EXPECT_EQ(mailer.send({"one"}).outcome, Outcome::sent) << "nothing was left behind";
}

// Where no time need pass, and nobody else wants the lock, a fake will do.
TEST(MailerOnAFake, TakesTheLockOnceAndGivesItBack) {
  const auto lock = std::make_shared<dlock::testing::FakeLock>("mail");
  lock->next_token(7);
  NotedPost post;
  Mailer mailer(lock, post);
  EXPECT_EQ(mailer.send({"one", "two"}).sent, 2U);
  EXPECT_EQ(post.tokens.back(), 7U);
  EXPECT_EQ(lock->grants().size(), 1U);
  EXPECT_TRUE(lock->last_grant().is_released());
  EXPECT_EQ(lock->acquires().front().wait, 100ms);
}

}  // namespace
