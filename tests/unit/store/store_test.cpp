// SPDX-License-Identifier: Apache-2.0
//
// The core's rules about time and loss, with the production coroutines under virtual time.
#include <gtest/gtest.h>

#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLease{9};
constexpr milliseconds kMargin{90};  // 1 % of the lease

using Told = std::vector<std::pair<HandleState, LossReason>>;

std::shared_ptr<Told> watch(LockHandle& handle) {
  auto told = std::make_shared<Told>();
  handle.on_state([told](HandleState state, LossReason why) { told->emplace_back(state, why); });
  return told;
}

ExtendAnswer extend_answer(ExtendStatus status, LossReason why = LossReason::none) {
  ExtendAnswer answer;
  answer.status = status;
  answer.reason = why;
  return answer;
}

ClaimAnswer claim_answer(ClaimStatus status) {
  ClaimAnswer answer;
  answer.status = status;
  return answer;
}

TEST(Store, AHeldLockIsRenewedAtAThirdAndNoLongerAfterItsRelease) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  ASSERT_TRUE(got->handle);
  const auto granted = fixture.env().now() - seconds(1);
  fixture.env().run_for(seconds(28));
  ASSERT_EQ(fixture.script().extend_times.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) {
    const auto due = granted + (kLease - kMargin) / 3 * static_cast<int>(i + 1);
    EXPECT_EQ(fixture.script().extend_times[i], due);
  }
  EXPECT_EQ(got->handle.state(), HandleState::held);
  got->handle = LockHandle();
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(fixture.script().extend_times.size(), 9U);
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
}

TEST(Store, ALockThatIsOverLeavesNoTimer) {
  StoreFixture fixture;
  auto first = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ASSERT_TRUE(first->handle);
  const auto timers = fixture.env().pending_timers();
  for (int i = 0; i < 20; ++i) {
    auto held = fixture.acquire(std::chrono::hours(1));
    fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting)});
    auto waiting = fixture.acquire(std::chrono::hours(1));
    fixture.env().run_for(milliseconds(1));
    ASSERT_TRUE(held->handle);
    ASSERT_FALSE(waiting->told);
    waiting->acquisition.lock()->cancel();
    std::swap(first, held);
    held->handle = LockHandle();
    fixture.env().run_for(milliseconds(1));
    EXPECT_EQ(waiting->ec, errc::cancelled);
    EXPECT_EQ(fixture.env().pending_timers(), timers);
  }
}

TEST(Store, F27_TheDeadlineCountsFromBeforeSendingNotFromTheReply) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), milliseconds(2900)});
  const auto sent = fixture.env().now();
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(2900));
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(got->handle.remaining(), sent + kLease - kMargin - fixture.env().now());
}

TEST(Store, F84_AGrantWhoseDeadlineHasPassedIsNotTold) {
  StoreFixture fixture;
  auto stale = claim_answer(ClaimStatus::granted);
  stale.validity = {fixture.env().now() + milliseconds(50), kNever};
  fixture.script().claims.push_back({stale, milliseconds(60)});
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(70));
  EXPECT_FALSE(got->told);
  fixture.env().run_for(seconds(1));
  ASSERT_TRUE(got->handle);  // asked again, with a fresh lease
  EXPECT_GT(got->handle.remaining(), seconds(7));
}

TEST(Store, UnansweredRenewalsAreSuspectThenLostExactlyAtTheDeadline) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  const auto sent = fixture.env().now();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(got->handle);
  TimePoint lost_at{};
  got->handle.on_state([&](HandleState state, LossReason) {
    if (state == HandleState::lost) lost_at = fixture.env().now();
  });
  for (int i = 0; i < 100; ++i) {
    fixture.script().extends.push_back({extend_answer(ExtendStatus::extended), seconds(1000)});
  }
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(*told, (Told{{HandleState::suspect, LossReason::none},
                         {HandleState::lost, LossReason::expired}}));
  EXPECT_EQ(lost_at, sent + kLease - kMargin);
  EXPECT_TRUE(got->handle.stop_token().stop_requested());
  EXPECT_GE(fixture.script().extend_times.size(), 2U);      // F04: tried again within the lease
  EXPECT_EQ(fixture.script().release_searches.size(), 1U);  // what may be left is withdrawn
  EXPECT_EQ(got->handle.release(), errc::lock_lost);
}

TEST(Store, ALeaseThatIsNotRenewedEndsAtItsDeadline) {
  StoreFixture fixture;
  auto fixed = claim_answer(ClaimStatus::granted);
  fixed.validity = {fixture.env().now() + kLease, kNever};
  fixture.script().claims.push_back({fixed, {}});
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(got->handle);
  fixture.env().run_for(kLease - kMargin - milliseconds(2));
  EXPECT_TRUE(told->empty());
  fixture.env().run_for(milliseconds(2));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::expired}}));
}

TEST(Store, F04_OneFailedRenewalHealsInsideTheLease) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(got->handle);
  fixture.script().extends.push_back({extend_answer(ExtendStatus::unavailable), {}});
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(*told, (Told{{HandleState::suspect, LossReason::none},
                         {HandleState::held, LossReason::none}}));
  EXPECT_EQ(got->handle.state(), HandleState::held);
}

TEST(Store, F26_AfterAPauseTheFirstCallSaysLostAndItIsToldOnce) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  auto told = watch(got->handle);
  fixture.env().pause_for(kLease);
  EXPECT_EQ(got->handle.state(), HandleState::lost);
  EXPECT_THROW(got->handle.check(), LockError);
  EXPECT_EQ(got->handle.remaining(), Duration::zero());
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::expired}}));
  EXPECT_TRUE(fixture.script().extend_times.empty());  // a lost lock is not renewed
}

TEST(Store, ARenewalAnsweredAfterTheDeadlineDoesNotBringItBack) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(2999));
  auto told = watch(got->handle);
  fixture.script().extends.push_back({extend_answer(ExtendStatus::extended), milliseconds(10)});
  fixture.env().run_for(milliseconds(5));  // sent, not answered
  fixture.env().pause_for(kLease);
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::expired}}));
  EXPECT_EQ(got->handle.state(), HandleState::lost);
}

TEST(Store, GoneAtTheRenewalIsToldWithItsReason) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(got->handle);
  fixture.script().extends.push_back({extend_answer(ExtendStatus::gone, LossReason::taken), {}});
  fixture.env().run_for(seconds(4));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::taken}}));
  EXPECT_EQ(got->handle.release(), errc::lock_lost);
  fixture.env().run_for(seconds(60));
  EXPECT_TRUE(fixture.script().release_searches.empty());  // the next owner is left alone
}

TEST(Store, EventsOfTheStoreLoseTheLock) {
  StoreFixture fixture(LeaseScope::session);
  auto first = fixture.acquire();
  auto second = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(first->handle);
  fixture.script().sink->on_claim_gone(fixture.script().granted[0], LossReason::removed);
  EXPECT_EQ(first->handle.state(), HandleState::lost);
  EXPECT_EQ(second->handle.state(), HandleState::held);
  fixture.script().sink->on_session_gone(LossReason::session_ended);
  EXPECT_EQ(second->handle.state(), HandleState::lost);
  EXPECT_EQ(second->handle.loss_reason(), LossReason::session_ended);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(told->size(), 1U);
}

TEST(Store, OnStateIsCalledAtOnceIfNotHeldNow) {
  StoreFixture fixture(LeaseScope::session);
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  fixture.script().sink->on_session_gone(LossReason::session_ended);
  auto told = watch(got->handle);
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::session_ended}}));
}

TEST(Store, LinkDownIsSuspectAndARenewalAfterLinkUpMakesItHeldAgain) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  auto told = watch(got->handle);
  fixture.script().sink->on_link_down({});
  fixture.env().run_for(milliseconds(500));
  fixture.script().sink->on_link_up();
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(*told, (Told{{HandleState::suspect, LossReason::none},
                         {HandleState::held, LossReason::none}}));
}

TEST(Store, F82_OneHeartbeatRenewsAllLocksOfASession) {
  StoreFixture fixture(LeaseScope::session);
  std::vector<std::shared_ptr<StoreFixture::Outcome>> held;
  for (int i = 0; i < 50; ++i) {
    held.push_back(fixture.acquire());
    fixture.env().run_for(milliseconds(20));
  }
  fixture.env().run_for(seconds(3));
  ASSERT_FALSE(fixture.script().extend_batches.empty());
  EXPECT_EQ(fixture.script().extend_batches.front(), 50U);
  EXPECT_LE(fixture.script().extend_batches.size(), 2U);
}

TEST(Store, F82_LocksThatAreDueTogetherAreRenewedTogether) {
  StoreFixture fixture;
  std::vector<std::shared_ptr<StoreFixture::Outcome>> held;
  for (int i = 0; i < 1000; ++i) held.push_back(fixture.acquire());
  fixture.env().run_for(milliseconds(3100));
  EXPECT_EQ(fixture.script().extend_batches, std::vector<std::size_t>{1000});
}

TEST(Store, AGrantThatComesAfterTheCancelIsGivenBack) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), seconds(1)});
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(500));
  got->acquisition.lock()->cancel();
  EXPECT_TRUE(got->told);  // at once
  EXPECT_EQ(got->ec, errc::cancelled);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(got->times_told, 1);
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
}

TEST(Store, TheWaitEndsAtItsDeadlineEvenWhileTheStoreIsSilent) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), seconds(1000)});
  const auto start = fixture.env().now();
  auto got = fixture.acquire(seconds(2));
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(got->ec, errc::unavailable);
  EXPECT_EQ(got->at, start + seconds(2));
  EXPECT_EQ(got->times_told, 1);
}

TEST(Store, AWaitThatRunsOutWhileTheLinkIsDownIsUnavailable) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  auto cut_off = fixture.acquire(seconds(2));
  fixture.env().run_for(seconds(1));
  fixture.script().sink->on_link_down(make_failure(errc::unavailable, "connection lost"));
  fixture.env().run_for(seconds(2));
  EXPECT_EQ(cut_off->ec, errc::unavailable);
  fixture.script().sink->on_link_up();
  auto waited = fixture.acquire(seconds(2));
  fixture.env().run_for(seconds(3));
  EXPECT_EQ(waited->ec, errc::timed_out);
}

TEST(Store, AWaitThatRunsOutBeforeASlowStoreIsReachedIsUnavailable) {
  StoreFixture fixture;
  fixture.script().connect_takes = seconds(3);
  Diagnostics told;
  const auto start = fixture.env().now();
  auto got =
      fixture.acquire(milliseconds(20), "orders/42",
                      [&](core::Acquisition::Request& request) { request.diagnostics = &told; });
  fixture.env().run_for(seconds(2));
  EXPECT_EQ(got->ec, errc::unavailable);
  EXPECT_EQ(got->at, start + kFirstAnswer);
  EXPECT_NE(told.server_text.find(core::kNoAnswer), std::string::npos) << told.server_text;
  fixture.env().run_for(seconds(5));
  EXPECT_EQ(fixture.script().claim_calls, 0) << "nobody wants it any more";
}

TEST(Store, AShortWaitGetsTheFirstAnswerOfTheStore) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::busy), milliseconds(300)});
  auto held = fixture.acquire(milliseconds(20));
  fixture.env().run_for(seconds(2));
  EXPECT_EQ(held->ec, errc::timed_out);
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), milliseconds(300)});
  auto free = fixture.acquire(milliseconds(20));
  fixture.env().run_for(seconds(2));
  EXPECT_TRUE(free->handle);
}

TEST(Store, AWithdrawnClaimOfUnknownOutcomeIsSearchedForUntilNoCopyCanArrive) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), seconds(1000)});
  auto got = fixture.acquire(milliseconds(1));
  fixture.env().run_for(seconds(30));
  const auto& searches = fixture.script().release_searches;
  ASSERT_GE(searches.size(), 4U);
  for (const bool search : searches) EXPECT_TRUE(search);
}

TEST(Store, AWithdrawalIsTriedUntilTheStoreAnswers) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::granted), seconds(1000)});
  const ReleaseAnswer down;
  for (int i = 0; i < 1000; ++i) fixture.script().releases.push_back({down, {}});
  auto got = fixture.acquire(milliseconds(1));
  fixture.env().run_for(4 * kLease);
  const auto tried = fixture.script().release_searches.size();
  fixture.env().run_for(4 * kLease);
  EXPECT_GT(fixture.script().release_searches.size(), tried);
}

TEST(Store, ATimedOutWaiterIsWithdrawn) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  auto got = fixture.acquire(seconds(2));
  fixture.env().run_for(seconds(3));
  EXPECT_EQ(got->ec, errc::timed_out);
  EXPECT_EQ(fixture.script().wait_calls, 1);
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
}

TEST(Store, AnOutageInsideALongWaitEndsItAfterTheConnectTimeout) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(100));
  EXPECT_FALSE(got->told);
  fixture.script().sink->on_link_down(make_failure(errc::unavailable, "connection refused"));
  const auto down = fixture.env().now();
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(got->ec, errc::unavailable);
  EXPECT_EQ(got->at, down + seconds(15));
}

TEST(Store, AShortOutageDoesNotEndAWait) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  fixture.script().sink->on_link_down({});
  fixture.env().run_for(seconds(14));
  fixture.script().sink->on_link_up();
  fixture.env().run_for(seconds(60));
  EXPECT_FALSE(got->told);
  fixture.script().wake();
  fixture.env().run_for(milliseconds(1));
  EXPECT_TRUE(got->handle);
}

TEST(Store, F12_AFailedReleaseIsTriedAgainUntilDone) {
  StoreFixture fixture(LeaseScope::none);
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ReleaseAnswer down;
  for (int i = 0; i < 20; ++i) fixture.script().releases.push_back({down, {}});
  error_code outcome;
  got->handle.start_release([&](error_code ec) { outcome = ec; });
  fixture.env().run_for(seconds(6));
  EXPECT_EQ(outcome, errc::unavailable);  // who waits is told after release_timeout
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(fixture.script().release_searches.size(), 21U);
}

// The last of many locks that are released at once are answered after their deadline.
TEST(Store, AReleaseOutlastsItsDeadlineWhileTheStoreAnswersOthers) {
  for (const bool answers : {true, false}) {
    StoreFixture fixture;
    auto first = fixture.acquire(std::nullopt, "first");
    auto second = fixture.acquire(std::nullopt, "second");
    fixture.env().run_for(milliseconds(1));
    for (int i = 0; i < 100; ++i) {
      fixture.script().extends.push_back({extend_answer(ExtendStatus::unavailable), {}});
    }
    fixture.env().run_for(seconds(7));
    const auto deadline = fixture.env().now() + second->handle.remaining().value();
    ReleaseAnswer done;
    done.status = ReleaseStatus::released;
    fixture.script().releases.push_back({done, answers ? milliseconds(1500) : seconds(100)});
    fixture.script().releases.push_back({done, seconds(3)});
    first->handle.start_release([](error_code) {});
    std::optional<error_code> outcome;
    TimePoint ended_at{};
    second->handle.start_release([&](error_code ec) {
      outcome = ec;
      ended_at = fixture.env().now();
    });
    fixture.env().run_for(seconds(4));
    ASSERT_TRUE(outcome);
    EXPECT_EQ(*outcome, answers ? error_code() : make_error_code(errc::unavailable));
    if (!answers) {
      EXPECT_EQ(ended_at, deadline);
    }
  }
}

TEST(Store, ReleaseOfWhatIsNoLongerOursSaysSo) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ReleaseAnswer not_ours;
  not_ours.status = ReleaseStatus::not_holder;
  fixture.script().releases.push_back({not_ours, {}});
  error_code outcome;
  got->handle.start_release([&](error_code ec) { outcome = ec; });
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(outcome, errc::lock_lost);
}

TEST(Store, ClosingLooksForALateCopyOnceMoreAndWaitsForNone) {
  StoreFixture fixture;
  fixture.script().claims.push_back({claim_answer(ClaimStatus::unknown), {}});
  auto got = fixture.acquire(milliseconds(0));
  fixture.env().run_for(milliseconds(100));
  const auto searches = fixture.script().release_searches.size();
  ASSERT_GE(searches, 1U);
  asio::co_spawn(fixture.env().executor(), fixture.store->close(), [](std::exception_ptr) {});
  fixture.env().run_for(milliseconds(1));
  EXPECT_TRUE(fixture.script().closed);
  EXPECT_EQ(fixture.script().release_searches.size(), searches + 1);
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(fixture.script().release_searches.size(), searches + 1);
}

TEST(Store, ClosingGivesUpWhatTheStoreDoesNotAnswer) {
  StoreFixture fixture(LeaseScope::none);
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ReleaseAnswer down;
  for (int i = 0; i < 1000; ++i) fixture.script().releases.push_back({down, {}});
  asio::co_spawn(fixture.env().executor(), fixture.store->close(), [](std::exception_ptr) {});
  fixture.env().run_for(seconds(4));
  EXPECT_FALSE(fixture.script().closed) << "it is tried for release_timeout";
  fixture.env().run_for(seconds(2));
  EXPECT_TRUE(fixture.script().closed);
  const auto tried = fixture.script().release_searches.size();
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(fixture.script().release_searches.size(), tried);
}

TEST(Store, ClosingReleasesWhatIsHeldAndTellsEveryone) {
  StoreFixture fixture;
  auto held = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  fixture.script().claims.push_back({claim_answer(ClaimStatus::waiting), {}});
  auto waiting = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  auto told = watch(held->handle);
  asio::co_spawn(fixture.env().executor(), fixture.store->close(), [](std::exception_ptr) {});
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(*told, (Told{{HandleState::lost, LossReason::closed}}));
  EXPECT_EQ(waiting->ec, errc::closed);
  EXPECT_EQ(fixture.script().release_searches.size(), 2U);
  EXPECT_TRUE(fixture.script().closed);
  auto after = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(after->ec, errc::closed);
}

void start_closing(StoreFixture& fixture) {
  asio::co_spawn(fixture.env().executor(), fixture.store->close(),
                 [](const std::exception_ptr&) {});
}

TEST(Store, ClosingKeepsALockRenewedUntilWhoeverWorksUnderItHasLetGo) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  const auto stop = got->handle.stop_token();
  start_closing(fixture);
  fixture.env().run_for(seconds(4));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_EQ(got->handle.loss_reason(), LossReason::closed);
  EXPECT_TRUE(fixture.script().release_searches.empty()) << "he has not said that he stopped";
  EXPECT_EQ(fixture.script().extend_times.size(), 1U) << "renewed";
  EXPECT_FALSE(fixture.script().closed);
  EXPECT_EQ(got->handle.release(), errc::lock_lost);
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
  EXPECT_TRUE(fixture.script().closed);
}

TEST(Store, ClosingWaitsForTheReleaseTimeoutAtMostAndReleasesNothingThatIsInUse) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  const auto stop = got->handle.stop_token();
  start_closing(fixture);
  fixture.env().run_for(milliseconds(4990));
  EXPECT_TRUE(fixture.script().release_searches.empty());
  fixture.env().run_for(milliseconds(20));
  EXPECT_TRUE(fixture.script().release_searches.empty()) << "the work has not ended";
  EXPECT_TRUE(fixture.script().closed);
}

TEST(Store, ClosingGivesBackAfterTheCallbacksHaveReturned) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  std::optional<std::size_t> released_before;
  got->handle.on_state(
      [&](HandleState, LossReason) { released_before = fixture.script().release_searches.size(); });
  start_closing(fixture);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(released_before, 0U);
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
  EXPECT_TRUE(fixture.script().closed) << "the handle itself is not waited for";
}

TEST(Store, ClosingGivesBackAtOnceWhatNobodyListensTo) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  start_closing(fixture);
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(fixture.script().release_searches, std::vector<bool>{false});
  EXPECT_TRUE(fixture.script().closed);
}

TEST(Store, AStoreThatCannotGiveWhatIsRequiredIsRefusedWithTheRemedy) {
  core::StoreSettings settings;
  settings.require = {"exclusive"};
  StoreFixture fixture(LeaseScope::claim, settings);
  fixture.script().capabilities.guarantee = Guarantee::best_effort;
  fixture.script().capabilities.shortfalls = {{"it forgets", "set appendfsync always"}};
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::config_unsafe);
  EXPECT_EQ(fixture.script().claim_calls, 0);
}

error_code lease_answer(LeaseScope scope, milliseconds lease, std::string* text = nullptr) {
  StoreFixture fixture(scope);
  Diagnostics told;
  auto got = fixture.acquire({}, "orders/42", [&](core::Acquisition::Request& request) {
    request.lease = lease;
    request.diagnostics = &told;
  });
  fixture.env().run_for(seconds(1));
  if (text != nullptr) *text = told.server_text;
  return got->ec;
}

TEST(Store, ALeaseOutOfRangeIsRefusedWithTheRangeOnEveryKindOfStore) {
  std::string text;
  for (const auto lease : {milliseconds(0), milliseconds(-1), milliseconds::min()}) {
    EXPECT_EQ(lease_answer(LeaseScope::claim, lease, &text), errc::invalid_argument);
    EXPECT_NE(text.find("1s to 1h"), std::string::npos) << text;
    EXPECT_EQ(lease_answer(LeaseScope::session, lease, &text), errc::invalid_argument);
    EXPECT_NE(text.find("9s or more"), std::string::npos) << text;
    EXPECT_EQ(lease_answer(LeaseScope::none, lease, &text), errc::invalid_argument);
    EXPECT_NE(text.find("1ms or more"), std::string::npos) << text;
  }
  for (const auto lease : {milliseconds(999), milliseconds(3'600'001), milliseconds::max()}) {
    EXPECT_EQ(lease_answer(LeaseScope::claim, lease, &text), errc::invalid_argument);
    EXPECT_NE(text.find("1s to 1h"), std::string::npos) << text;
  }
  EXPECT_FALSE(lease_answer(LeaseScope::session, milliseconds::max())) << "it is beaten";
  EXPECT_FALSE(lease_answer(LeaseScope::none, milliseconds::max()));
}

TEST(Store, ADriftMarginThatEatsTheLeaseIsRefused) {
  core::StoreSettings settings;
  settings.drift_margin = seconds(9);
  StoreFixture fixture(LeaseScope::claim, settings);
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::config_invalid);
  EXPECT_EQ(fixture.script().claim_calls, 0);
  auto longer = fixture.acquire({}, "a", [](auto& request) { request.lease = seconds(20); });
  fixture.env().run_for(seconds(1));
  EXPECT_FALSE(longer->ec);
}

TEST(Store, WithoutARequirementOneShortWarningIsGiven) {
  StoreFixture fixture;
  fixture.script().capabilities.guarantee = Guarantee::best_effort;
  fixture.script().capabilities.shortfalls = {{"it forgets", "set appendfsync always"}};
  fixture.acquire();
  fixture.acquire();
  fixture.env().run_for(seconds(1));
  ASSERT_EQ(fixture.host->logged.size(), 1U);
  EXPECT_EQ(fixture.host->logged[0].find("appendfsync"), std::string::npos)
      << "the reasons are for `dlock doctor`";
  EXPECT_LT(fixture.host->logged[0].size(), 120U) << fixture.host->logged[0];
  EXPECT_NE(fixture.host->logged[0].find("accept: best_effort"), std::string::npos);
}

TEST(Store, WhatIsAcceptedIsNotWarnedOf) {
  core::StoreSettings settings;
  settings.accepts_best_effort = true;
  StoreFixture fixture(LeaseScope::claim, settings);
  fixture.script().capabilities.guarantee = Guarantee::best_effort;
  fixture.script().capabilities.shortfalls = {{"it forgets", "set appendfsync always"}};
  fixture.acquire();
  fixture.env().run_for(seconds(1));
  EXPECT_TRUE(fixture.host->logged.empty());
}

TEST(Store, WhoWillNotWaitDoesNotWaitForTheStoreEither) {
  StoreFixture fixture;
  fixture.script().connect_failure = make_failure(errc::unavailable, "connection refused");
  fixture.script().connect_takes = seconds(60);
  const auto start = fixture.env().now();
  const auto with_patience = [](core::Acquisition::Request& request) {
    request.limits.patience = milliseconds(2500);
  };
  auto patient = fixture.acquire(seconds(40));
  auto got = fixture.acquire(milliseconds(0), "orders/42", with_patience);
  fixture.env().run_for(seconds(50));
  EXPECT_EQ(got->ec, errc::unavailable) << "another was at it already";
  EXPECT_LE(got->at, start + seconds(3));
  const auto again = fixture.env().now();
  auto alone = fixture.acquire(milliseconds(0), "orders/42", with_patience);
  fixture.env().run_for(seconds(50));
  EXPECT_EQ(alone->ec, errc::unavailable);
  EXPECT_LE(alone->at, again + seconds(3));
  EXPECT_TRUE(patient->told);
}

TEST(Store, WhoWaitsForWhatItHoldsItselfIsToldSo) {
  StoreFixture fixture;
  auto held = fixture.acquire();
  fixture.env().run_for(seconds(1));
  ASSERT_TRUE(held->handle);
  fixture.script().claims.push_back({claim_answer(ClaimStatus::busy)});
  Diagnostics told;
  const auto telling = [&](core::Acquisition::Request& request) { request.diagnostics = &told; };
  auto got = fixture.acquire(milliseconds(0), "orders/42", telling);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(got->ec, errc::timed_out);
  EXPECT_EQ(told.server_text, "this process itself holds it");
  fixture.script().claims.push_back({claim_answer(ClaimStatus::busy)});
  fixture.acquire(milliseconds(0), "orders/43", telling);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(told.server_text, "somebody else holds it");
}

TEST(Store, AnUnreachableStoreIsUnavailableWithinTheConnectTimeout) {
  StoreFixture fixture;
  fixture.script().connect_failure = make_failure(errc::unavailable, "connection refused");
  fixture.script().connect_takes = milliseconds(10);
  const auto start = fixture.env().now();
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(got->ec, errc::unavailable);
  EXPECT_LE(got->at, start + seconds(15) + milliseconds(20));
}

TEST(Store, F82_LocksThatAreDueSoonAreRenewedWithThoseThatAreDue) {
  StoreFixture fixture;
  auto first = fixture.acquire();
  fixture.env().run_for(milliseconds(360));  // within a twentieth of the lease
  auto second = fixture.acquire();
  fixture.env().run_for(seconds(3));
  EXPECT_EQ(fixture.script().extend_batches, std::vector<std::size_t>{2});
}

TEST(Store, AFailedReleaseIsTriedUntilTheStoreHasEndedTheLease) {
  StoreFixture fixture;
  const auto sent = fixture.env().now();
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ReleaseAnswer down;
  for (int i = 0; i < 100; ++i) fixture.script().releases.push_back({down, {}});
  got->handle = LockHandle();
  // Not only until we had to stop believing in it, which is the drift margin earlier.
  fixture.env().run_for(sent + kLease - kMargin / 2 - fixture.env().now());
  const auto before = fixture.script().release_searches.size();
  fixture.env().run_for(kMargin);
  EXPECT_EQ(fixture.script().release_searches.size(), before + 1) << "at the very end";
  fixture.env().run_for(seconds(60));
  EXPECT_EQ(fixture.script().release_searches.size(), before + 1);
}

TEST(Store, AFailedReleaseIsTriedForAsLongAsAnUnansweredRenewalMayHaveProlonged) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  fixture.script().extends.push_back({extend_answer(ExtendStatus::extended), seconds(1000)});
  fixture.env().run_for(milliseconds(3100));
  ASSERT_EQ(fixture.script().extend_times.size(), 1U);
  const auto prolonged_until = fixture.script().extend_times.front() + kLease;
  ReleaseAnswer down;
  for (int i = 0; i < 100; ++i) fixture.script().releases.push_back({down, {}});
  got->handle = LockHandle();
  fixture.env().run_for(prolonged_until - kMargin - fixture.env().now());
  const auto before = fixture.script().release_searches.size();
  fixture.env().run_for(seconds(60));
  EXPECT_GT(fixture.script().release_searches.size(), before);
  EXPECT_GT(fixture.script().releases.size(), 0U) << "and no longer";
}

TEST(Store, ARenewalWaitsNoLongerThanTheRequestTimeout) {
  core::StoreSettings settings;
  settings.request_timeout = milliseconds(500);
  StoreFixture fixture(LeaseScope::claim, settings);
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  for (int i = 0; i < 2; ++i) {
    fixture.script().extends.push_back({extend_answer(ExtendStatus::extended), seconds(1000)});
  }
  fixture.env().run_for(milliseconds(3300));
  EXPECT_EQ(got->handle.state(), HandleState::held);
  fixture.env().run_for(milliseconds(200));
  EXPECT_EQ(got->handle.state(), HandleState::suspect);
}

TEST(Store, ARenewalThatThrowsIsAFailedOneAndIsTriedAgain) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  fixture.script().extend_throws = 1;
  fixture.env().run_for(milliseconds(3100));
  EXPECT_EQ(got->handle.state(), HandleState::suspect);
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(got->handle.state(), HandleState::held);
  EXPECT_EQ(fixture.script().extend_batches.size(), 2U);
}

TEST(Store, ARefusedReleaseIsToldAsRefused) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  ReleaseAnswer refused;
  refused.status = ReleaseStatus::refused;
  fixture.script().releases.push_back({refused, {}});
  error_code outcome;
  got->handle.start_release([&](error_code ec) { outcome = ec; });
  fixture.env().run_for(milliseconds(1));
  EXPECT_EQ(outcome, errc::access_denied);
}

TEST(Store, AfterAPauseTheReleaseSaysThatItWasLost) {
  StoreFixture fixture;
  auto got = fixture.acquire();
  fixture.env().run_for(seconds(1));
  fixture.env().pause_for(kLease);
  EXPECT_EQ(got->handle.release(), errc::lock_lost) << "nobody had looked at the clock yet";
}

struct Downgraded {
  error_code ec;
  Mode mode = Mode::exclusive;
  HandleState state = HandleState::held;
  Mode claimed = Mode::exclusive;  ///< the mode of the claim
};

/// The result of a downgrade that the store answers with `status`.
Downgraded downgraded_by(DowngradeStatus status) {
  StoreFixture fixture;
  fixture.script().capabilities.shared_mode = true;
  auto got = fixture.acquire();
  fixture.env().run_for(milliseconds(1));
  DowngradeAnswer answer;
  answer.status = status;
  if (status == DowngradeStatus::gone) answer.reason = LossReason::removed;
  fixture.script().downgrades.push_back(answer);
  Downgraded result;
  bool is_over = false;
  core::HandleAccess::hold(got->handle)->downgrade([&](error_code ec) {
    is_over = true;
    result.ec = ec;
  });
  fixture.env().run_for(milliseconds(1));
  EXPECT_TRUE(is_over);
  result.mode = got->handle.mode();
  result.state = got->handle.state();
  result.claimed = fixture.script().granted.back()->request().mode;
  return result;
}

TEST(Store, AfterADowngradeWithoutACertainAnswerTheHandleIsShared) {
  for (const auto status : {DowngradeStatus::unknown, DowngradeStatus::unavailable}) {
    const auto result = downgraded_by(status);
    EXPECT_EQ(result.ec, errc::unavailable);
    EXPECT_EQ(result.mode, Mode::shared);
    EXPECT_EQ(result.state, HandleState::held);
    EXPECT_EQ(result.claimed, Mode::exclusive) << "the next downgrade asks the store again";
  }
}

TEST(Store, ADowngradeHasTheResultThatTheStoreAnswers) {
  const auto done = downgraded_by(DowngradeStatus::shared);
  EXPECT_FALSE(done.ec);
  EXPECT_EQ(done.mode, Mode::shared);
  EXPECT_EQ(done.claimed, Mode::shared);
  const auto failed = downgraded_by(DowngradeStatus::failed);
  EXPECT_EQ(failed.ec, errc::not_supported);
  EXPECT_EQ(failed.mode, Mode::exclusive);
  const auto gone = downgraded_by(DowngradeStatus::gone);
  EXPECT_EQ(gone.ec, errc::lock_lost);
  EXPECT_EQ(gone.state, HandleState::lost);
}

}  // namespace
}  // namespace dlock::tests
