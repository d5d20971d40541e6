// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/self_test/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <optional>

#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::self_testing {
namespace {

using namespace std::chrono_literals;
using Kind = SelfTestAnswer::Kind;
using Result = SelfTestReport::Result;
using Verdict = SelfTest::Verdict;
using testing::HasSubstr;

constexpr SelfTestStep kSteps[] = {SelfTestStep::acquire, SelfTestStep::acquire_as_another,
                                   SelfTestStep::release_as_another, SelfTestStep::read_back,
                                   SelfTestStep::remove};
constexpr Kind kRight[] = {Kind::yes, Kind::no, Kind::no, Kind::yes, Kind::yes};

SelfTestAnswer answer(Kind kind) {
  SelfTestAnswer made{kind};
  if (kind == Kind::denied) made.failure = make_failure(errc::access_denied, "NOPERM");
  if (kind == Kind::unanswered) made.failure = make_failure(errc::unavailable, "no memory");
  return made;
}

/// All answers are right but that of `step`.
SelfTest with(SelfTestStep step, Kind kind) {
  SelfTest test;
  for (std::size_t i = 0; i < 5; ++i) {
    test.add(kSteps[i], answer(kSteps[i] == step ? kind : kRight[i]));
  }
  return test;
}

SelfTest passed() { return with(SelfTestStep::acquire, Kind::yes); }
SelfTest failed() { return with(SelfTestStep::acquire_as_another, Kind::yes); }
SelfTest denied() { return with(SelfTestStep::remove, Kind::denied); }
SelfTest silent() { return with(SelfTestStep::remove, Kind::unanswered); }

error_code unsafe() { return make_error_code(errc::config_unsafe); }

TEST(SelfTest, RightAnswersPass) {
  const auto test = passed();
  EXPECT_EQ(test.verdict(), Verdict::passed);
  EXPECT_FALSE(test.failure("host:1", unsafe()).error);
  const auto report = test.report("host:1");
  ASSERT_EQ(report.steps.size(), 5U);
  for (const auto& step : report.steps) EXPECT_EQ(step.result, Result::passed) << step.name;
  EXPECT_EQ(report.failure_text(), "");
}

TEST(SelfTest, AWrongAnswerToAnyStepIsNamed) {
  const char* const names[] = {"acquire", "acquire as another owner", "release as another owner",
                               "read back", "remove"};
  for (std::size_t i = 0; i < 5; ++i) {
    const auto test = with(kSteps[i], kRight[i] == Kind::yes ? Kind::no : Kind::yes);
    EXPECT_EQ(test.verdict(), Verdict::wrong) << names[i];
    const auto why = test.failure("host:1", unsafe());
    EXPECT_EQ(why.error, errc::config_unsafe);
    EXPECT_THAT(why.text, HasSubstr(std::string("host:1 fails the self-test at step '") + names[i]))
        << why.text;
    const auto report = test.report("host:1");
    EXPECT_EQ(report.steps[i].result, Result::wrong);
    EXPECT_NE(report.steps[i].text, "");
  }
}

TEST(SelfTest, OneWrongAnswerOfAStepOutweighsItsOthers) {
  for (const auto other : {Kind::no, Kind::denied, Kind::unanswered}) {
    auto before = passed();
    before.add(SelfTestStep::release_as_another, answer(Kind::yes));
    before.add(SelfTestStep::release_as_another, answer(other));
    EXPECT_EQ(before.verdict(), Verdict::wrong);
  }
}

TEST(SelfTest, ARefusalOrSilenceIsNotTestedAndNeverWrong) {
  for (const auto step : kSteps) {
    const auto without_right = with(step, Kind::denied);
    EXPECT_EQ(without_right.verdict(), Verdict::denied);
    EXPECT_FALSE(without_right.failure("host:1", unsafe()).error);
    const auto without_answer = with(step, Kind::unanswered);
    EXPECT_EQ(without_answer.verdict(), Verdict::unanswered);
    const auto why = without_answer.failure("host:1", unsafe());
    EXPECT_EQ(why.error, errc::unavailable);
    EXPECT_EQ(why.text, "no memory");
    const auto steps = without_right.report("host:1").steps;
    EXPECT_EQ(steps[static_cast<std::size_t>(step)].result, Result::not_tested);
    EXPECT_EQ(steps[static_cast<std::size_t>(step)].text, "NOPERM");
  }
}

// Without a first owner, the other one may acquire.
TEST(SelfTest, OtherStepsCountOnlyAfterTheFirstOwnerHasAcquired) {
  for (const auto kind : {Kind::denied, Kind::unanswered}) {
    SelfTest test;
    test.add(SelfTestStep::acquire, answer(kind));
    test.add(SelfTestStep::acquire_as_another, answer(Kind::yes));
    test.add(SelfTestStep::read_back, answer(Kind::no));
    EXPECT_EQ(test.verdict(), kind == Kind::denied ? Verdict::denied : Verdict::unanswered);
    for (const auto& step : test.report("host:1").steps) {
      EXPECT_EQ(step.result, Result::not_tested) << step.name;
    }
  }
}

TEST(SelfTest, WithoutAnyAnswerItSaysWhichServerIsSilent) {
  const SelfTest test;
  EXPECT_EQ(test.verdict(), Verdict::unanswered);
  EXPECT_THAT(test.failure("host:1", unsafe()).text, HasSubstr("host:1"));
}

class SelfTestGates : public testing::Test {
 protected:
  /// The next runs end after that time with these results.
  SelfTestRun runs(std::vector<SelfTest> results, Duration takes = 0ms) {
    next_.insert(next_.end(), results.begin(), results.end());
    return [this, takes] { return one(takes); };
  }
  boost::asio::awaitable<SelfTest> one(Duration takes) {
    ++runs_;
    auto result = next_.front();
    next_.erase(next_.begin());
    if (takes > 0ms) co_await sleep_until(env_, env_.now() + takes);
    co_return result;
  }
  void pass(SelfTestRun run, std::optional<SelfTestResult>& result, Duration within = 1s) {
    boost::asio::co_spawn(env_.executor(), keep(std::move(run), result, env_.now() + within),
                          boost::asio::detached);
  }
  boost::asio::awaitable<void> keep(SelfTestRun run, std::optional<SelfTestResult>& result,
                                    TimePoint deadline) {
    auto passed = co_await gate_.pass(std::move(run), deadline);
    result = std::move(passed);
  }

  tests::VirtualEnv env_;
  SelfTestGate gate_{env_};
  std::vector<SelfTest> next_;
  int runs_ = 0;
};

TEST_F(SelfTestGates, OpenForAServerThatPassesOrDeniesTheTest) {
  for (const auto& test : {passed(), denied()}) {
    gate_.close();
    EXPECT_FALSE(gate_.is_open());
    std::optional<SelfTestResult> result;
    pass(runs({test}), result);
    env_.run_for(1ms);
    ASSERT_TRUE(result && *result);
    EXPECT_TRUE(lets_in(*result));
    EXPECT_TRUE(gate_.is_open());
  }
}

TEST_F(SelfTestGates, StayClosedWithoutAnAnswer) {
  std::optional<SelfTestResult> result;
  pass(runs({silent()}), result);
  env_.run_for(1ms);
  ASSERT_TRUE(result && *result);
  EXPECT_FALSE(lets_in(*result));
  EXPECT_FALSE(gate_.is_open());
  EXPECT_EQ(runs_, 1);
}

TEST_F(SelfTestGates, StayClosedAfterTwoRunsWithWrongAnswers) {
  std::optional<SelfTestResult> result;
  pass(runs({failed(), failed()}), result);
  env_.run_for(1ms);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->verdict(), Verdict::wrong);
  EXPECT_FALSE(gate_.is_open());
  EXPECT_EQ(runs_, 2);
}

// A flush between two steps makes an answer wrong.
TEST_F(SelfTestGates, OpenWhenTheSecondRunPasses) {
  std::optional<SelfTestResult> result;
  pass(runs({failed(), passed()}), result);
  env_.run_for(1ms);
  EXPECT_TRUE(gate_.is_open());
}

TEST_F(SelfTestGates, ShareOneRunBetweenCallers) {
  std::optional<SelfTestResult> first;
  std::optional<SelfTestResult> second;
  std::optional<SelfTestResult> impatient;
  const auto run = runs({passed()}, 100ms);
  pass(run, first);
  pass(run, second);
  pass(run, impatient, 50ms);
  env_.run_for(99ms);
  EXPECT_FALSE(first || second);
  ASSERT_TRUE(impatient);
  EXPECT_FALSE(lets_in(*impatient)) << "its deadline was first";
  env_.run_for(2ms);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(lets_in(*first) && lets_in(*second));
  EXPECT_EQ(runs_, 1);
}

TEST_F(SelfTestGates, DoNotOpenForAServerThatWasReplacedDuringTheRun) {
  std::optional<SelfTestResult> result;
  std::optional<SelfTestResult> waiter;
  const auto run = runs({passed()}, 100ms);
  pass(run, result);
  pass(run, waiter);
  env_.run_for(50ms);
  gate_.close();
  env_.run_for(100ms);
  ASSERT_TRUE(result && waiter);
  EXPECT_FALSE(lets_in(*result) || lets_in(*waiter));
  EXPECT_FALSE(gate_.is_open());
}

TEST_F(SelfTestGates, LetWaitersGoOnAfterARunThatThrows) {
  std::optional<SelfTestResult> waiter;
  SelfTestRun throws = [this]() -> boost::asio::awaitable<SelfTest> {
    co_await sleep_until(env_, env_.now() + 100ms);
    throw std::runtime_error("a self-test");
  };
  bool has_thrown = false;
  boost::asio::co_spawn(env_.executor(), gate_.pass(std::move(throws), env_.now() + 1s),
                        [&](const std::exception_ptr& error, const SelfTestResult&) {
                          has_thrown = error != nullptr;
                        });
  pass(runs({passed()}), waiter);
  env_.run_for(150ms);
  EXPECT_TRUE(has_thrown);
  ASSERT_TRUE(waiter);
  EXPECT_FALSE(lets_in(*waiter));
  pass(runs({}), waiter);
  env_.run_for(1ms);
  EXPECT_TRUE(gate_.is_open());
}

}  // namespace
}  // namespace dlock::self_testing
