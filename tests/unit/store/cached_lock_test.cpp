// SPDX-License-Identifier: Apache-2.0
//
// A claim that stays with the process: who may take it, when it gives way, and what of its loss is
// told, with the production coroutines under virtual time.
#include "core/store/cached_lock.hpp"

#include <gtest/gtest.h>

#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using core::CachedLock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kCache{5};

struct Asked {
  int times_told = 0;
  error_code ec;
  LockHandle handle;
  Diagnostics diagnostics;
  std::function<void()> cancel;
};

/// Of a plan that governs every name.
class GatePolicy final : public core::ClaimPolicy {
 public:
  bool is_admitted(std::string_view) const override { return true; }
  asio::awaitable<Admission> admit(std::string) override { co_return Admission{}; }
  asio::awaitable<Confirmation> confirm(std::string, std::optional<std::uint64_t>) override {
    co_return Confirmation{};
  }
  void prepare(ClaimRequest& request) const override {
    request.gate = std::make_shared<GateCheck>();
  }
  asio::awaitable<bool> open(std::string, std::string) override { co_return false; }
  Failure sealed(std::string_view, std::string_view) const override { return {}; }
};

class CachedLockTest : public ::testing::Test {
 protected:
  CachedLockTest() { fixture.script().capabilities.can_tell_contention = true; }

  void keep(Duration cache, unsigned cohort = 0) {
    lock = std::make_shared<CachedLock>(CachedLock::Limits{cache, cohort});
  }

  std::shared_ptr<Asked> ask(std::optional<milliseconds> wait = std::nullopt) {
    auto asked = std::make_shared<Asked>();
    asked->diagnostics.server_text = earlier_text;
    core::Acquisition::Request request;
    request.name = "orders/42";
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = env().now() + *wait;
    request.limits.connect_timeout = seconds(15);
    request.diagnostics = &asked->diagnostics;
    request.policy = policy;
    asked->cancel = lock->acquire(
        fixture.store, std::move(request),
        std::make_shared<detail::AcquireHandler>([asked](error_code ec, LockHandle got) {
          ++asked->times_told;
          asked->ec = ec;
          asked->handle = std::move(got);
        }));
    settle();
    return asked;
  }

  /// Held by `asked` by now.
  std::shared_ptr<Asked> hold() {
    auto asked = ask();
    EXPECT_TRUE(asked->handle);
    return asked;
  }

  void give_back(Asked& asked) {
    asked.handle = LockHandle();
    settle();
  }

  bool take() {
    const auto hold = lock->take();
    if (hold) LockHandle{hold};  // and gives it back
    settle();
    return hold != nullptr;
  }

  /// The store does not answer the next `times` claims.
  void be_silent(std::size_t times) {
    Script::Timed<ClaimAnswer> late;
    late.after = seconds(1000);
    script().claims.insert(script().claims.end(), times, late);
  }

  void contend() {
    sink().on_contended(script().granted.back());
    settle();
  }

  void settle() { env().run_for(milliseconds(1)); }
  Script& script() { return fixture.script(); }
  EventSink& sink() { return *script().sink; }
  VirtualEnv& env() { return fixture.env(); }
  std::size_t releases() { return script().release_searches.size(); }

  StoreFixture fixture;
  std::string earlier_text;  ///< in the diagnostics before each acquire
  std::shared_ptr<core::ClaimPolicy> policy;
  std::shared_ptr<CachedLock> lock = std::make_shared<CachedLock>(CachedLock::Limits{kCache, 0});
};

TEST_F(CachedLockTest, IsTakenAgainWithoutTheStoreAndWithTheSameToken) {
  auto first = hold();
  const auto token = first->handle.token();
  EXPECT_EQ(first->handle.state(), HandleState::held);
  give_back(*first);
  const auto again = lock->take();
  ASSERT_TRUE(again);
  const LockHandle handle(again);
  EXPECT_EQ(handle.token(), token);
  EXPECT_EQ(handle.name(), "orders/42");
  EXPECT_EQ(handle.state(), HandleState::held);
  ASSERT_TRUE(handle.remaining());
  EXPECT_GT(*handle.remaining(), seconds(8));
  EXPECT_EQ(script().claim_calls, 1);
  EXPECT_EQ(releases(), 0U);
}

TEST_F(CachedLockTest, AnAcquireFromTheCacheClearsTheDiagnostics) {
  give_back(*hold());
  earlier_text = "refused before";
  const auto again = hold();
  EXPECT_EQ(script().claim_calls, 1);
  EXPECT_EQ(again->diagnostics.server_text, "");
}

TEST_F(CachedLockTest, NobodyTakesWhatSomebodyUses) {
  auto first = hold();
  EXPECT_FALSE(take());
  give_back(*first);
  const auto second = lock->take();
  EXPECT_TRUE(second);
  EXPECT_FALSE(lock->take());
  LockHandle{second};
}

TEST_F(CachedLockTest, IsGivenBackWhenTheTimeIsOverSinceTheLastRelease) {
  give_back(*hold());
  env().run_for(kCache - milliseconds(100));
  EXPECT_TRUE(take());
  env().run_for(kCache - milliseconds(100));
  EXPECT_TRUE(take());
  EXPECT_EQ(releases(), 0U);
  env().run_for(kCache + milliseconds(1));
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(take());
}

TEST_F(CachedLockTest, TheTimeThatItIsUsedDoesNotCount) {
  auto held = hold();
  give_back(*held);
  held = hold();
  env().run_for(3 * kCache);
  give_back(*held);
  env().run_for(kCache - milliseconds(100));
  EXPECT_TRUE(take());
  env().run_for(2 * kCache);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, IsRenewedWhileNobodyUsesIt) {
  keep(std::chrono::hours(1));
  give_back(*hold());
  env().run_for(seconds(60));
  EXPECT_GE(script().extend_times.size(), 19U);
  EXPECT_TRUE(take());
}

TEST_F(CachedLockTest, GivesWayAtOnceWhenNobodyUsesIt) {
  give_back(*hold());
  contend();
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(take());
}

TEST_F(CachedLockTest, GivesWayAtTheReleaseWhenItIsUsed) {
  auto held = hold();
  contend();
  EXPECT_EQ(held->handle.state(), HandleState::held);
  EXPECT_EQ(releases(), 0U);
  give_back(*held);
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(take());
}

TEST_F(CachedLockTest, WhoAskedBeforeTheGrantWasToldIsNotForgotten) {
  script().on_grant = [this](const ClaimPtr& claim) { sink().on_contended(claim); };
  give_back(*hold());
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, AStoreThatCannotTellKeepsNothing) {
  script().capabilities.can_tell_contention = false;
  give_back(*hold());
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(script().granted.back()->request().tell_contention);
}

TEST_F(CachedLockTest, AStoreThatCannotTellAnyMoreIsGivenAllBack) {
  give_back(*hold());
  script().capabilities.can_tell_contention = false;
  sink().on_capabilities_changed();
  settle();
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, LostWhileNobodyUsesItIsForgotten) {
  give_back(*hold());
  sink().on_claim_gone(script().granted.back(), LossReason::removed);
  EXPECT_FALSE(take());
  auto next = hold();
  EXPECT_EQ(next->handle.token(), 2U);
  EXPECT_EQ(releases(), 0U);
}

TEST_F(CachedLockTest, LostWhileItIsUsedIsToldOnceWithTheReason) {
  auto held = hold();
  std::vector<std::pair<HandleState, LossReason>> told;
  held->handle.on_state(
      [&told](HandleState state, LossReason why) { told.emplace_back(state, why); });
  sink().on_link_down({});
  settle();
  sink().on_claim_gone(script().granted.back(), LossReason::broken);
  settle();
  const decltype(told) expected = {{HandleState::suspect, LossReason::none},
                                   {HandleState::lost, LossReason::broken}};
  EXPECT_EQ(told, expected);
  EXPECT_TRUE(held->handle.stop_token().stop_requested());
  EXPECT_EQ(held->handle.release(), errc::lock_lost);
  EXPECT_FALSE(take());
}

TEST_F(CachedLockTest, TheFormerUserHearsNothingOfALaterLoss) {
  auto first = hold();
  const auto stop = first->handle.stop_token();
  give_back(*first);
  auto second = hold();
  sink().on_claim_gone(script().granted.back(), LossReason::broken);
  settle();
  EXPECT_FALSE(stop.stop_requested());
  EXPECT_EQ(second->handle.state(), HandleState::lost);
}

TEST_F(CachedLockTest, SuspectIsNotTakenButGivenBackAndAskedForAnew) {
  give_back(*hold());
  sink().on_link_down({});
  EXPECT_FALSE(take());
  auto next = ask();
  EXPECT_TRUE(next->handle);
  EXPECT_EQ(next->handle.token(), 2U);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, IsNotTakenPastItsDeadline) {
  give_back(*hold());
  env().pause_for(seconds(9));
  EXPECT_FALSE(lock->take());
  EXPECT_EQ(ask()->handle.token(), 2U);
}

TEST_F(CachedLockTest, IsNotHeldPastItsDeadline) {
  auto held = hold();
  give_back(*held);
  held = hold();
  env().pause_for(seconds(9));
  EXPECT_EQ(held->handle.state(), HandleState::lost);
  EXPECT_EQ(held->handle.loss_reason(), LossReason::expired);
  EXPECT_EQ(held->handle.release(), errc::lock_lost);
}

TEST_F(CachedLockTest, WhatItsUserSawLostIsLostForAll) {
  auto held = hold();
  held->handle.state();
  core::HandleAccess::hold(held->handle)->become(HandleState::lost, LossReason::expired);
  settle();
  EXPECT_EQ(releases(), 1U);  // withdrawn
  give_back(*held);
  EXPECT_FALSE(take());
  EXPECT_EQ(ask()->handle.token(), 2U);
}

TEST_F(CachedLockTest, IsPassedOnInsideTheProcessInTheOrderOfComing) {
  auto first = hold();
  auto second = ask();
  auto third = ask();
  EXPECT_EQ(second->times_told, 0);
  give_back(*first);
  ASSERT_TRUE(second->handle);
  EXPECT_EQ(third->times_told, 0);
  EXPECT_FALSE(take());
  give_back(*second);
  ASSERT_TRUE(third->handle);
  EXPECT_EQ(third->handle.token(), 1U);
  give_back(*third);
  EXPECT_EQ(script().claim_calls, 1);
  EXPECT_EQ(releases(), 0U);
}

TEST_F(CachedLockTest, WithoutACohortItGivesWayBeforeItIsPassedOn) {
  auto first = hold();
  auto second = ask();
  contend();
  give_back(*first);
  EXPECT_EQ(releases(), 1U);
  ASSERT_TRUE(second->handle);  // by the store
  EXPECT_EQ(second->handle.token(), 2U);
}

TEST_F(CachedLockTest, ACohortIsBounded) {
  keep(kCache, 2);
  std::vector<std::shared_ptr<Asked>> all{hold(), ask(), ask(), ask()};
  contend();
  for (const auto& each : all) {
    ASSERT_TRUE(each->handle);
    give_back(*each);
  }
  EXPECT_EQ(releases(), 1U);
  EXPECT_EQ(script().claim_calls, 2);
}

// That others wait is told some time after the grant; whoever has waited himself need not be told.
TEST_F(CachedLockTest, ACohortIsBoundedBeforeTheStoreHasTold) {
  keep(Duration::zero(), 2);
  ClaimAnswer waiting;
  waiting.status = ClaimStatus::waiting;
  script().claims.push_back({waiting});
  std::vector<std::shared_ptr<Asked>> all{ask(), ask(), ask(), ask()};
  ASSERT_EQ(all.front()->times_told, 0);
  script().wake();
  settle();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(all[turn]->handle);
    if (turn == 1) contend();  // it is told now, and those before count
    EXPECT_EQ(releases(), 0U) << turn;
    give_back(*all[turn]);
  }
  EXPECT_EQ(releases(), 1U);
  ASSERT_TRUE(all[3]->handle);  // by the store, at once: nobody else is there any more
  auto last = ask();
  give_back(*all[3]);
  EXPECT_TRUE(last->handle);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, ACohortWorksWithoutACache) {
  keep(Duration::zero(), 8);
  auto first = hold();
  auto second = ask();
  give_back(*first);
  ASSERT_TRUE(second->handle);
  EXPECT_EQ(releases(), 0U);
  give_back(*second);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, WhereNothingIsToldACohortIsBoundedAlways) {
  script().capabilities.can_tell_contention = false;
  keep(Duration::zero(), 1);
  std::vector<std::shared_ptr<Asked>> all{hold(), ask(), ask()};
  for (const auto& each : all) {
    ASSERT_TRUE(each->handle);
    give_back(*each);
  }
  EXPECT_EQ(script().claim_calls, 2);
}

TEST_F(CachedLockTest, ATryFindsItUsed) {
  auto first = hold();
  auto tried = ask(milliseconds(0));
  EXPECT_EQ(tried->times_told, 1);
  EXPECT_EQ(tried->ec, errc::timed_out);
  EXPECT_EQ(tried->diagnostics.server_text, "this process itself holds it");
  give_back(*first);
  EXPECT_TRUE(ask(milliseconds(0))->handle);
}

TEST_F(CachedLockTest, AWaitBehindAnUnansweredClaimIsUnavailable) {
  be_silent(5);
  auto asking = ask(seconds(60));
  auto behind = ask(seconds(2));
  env().run_for(seconds(3));
  EXPECT_FALSE(asking->times_told);
  EXPECT_EQ(behind->ec, errc::unavailable);
  EXPECT_FALSE(behind->diagnostics.server_text.empty());
}

TEST_F(CachedLockTest, ATryBehindAnUnansweredClaimGetsAnAnswerOfTheStore) {
  be_silent(1);
  ClaimAnswer busy;
  busy.status = ClaimStatus::busy;
  script().claims.push_back({busy, {}});
  auto asking = ask(seconds(60));
  auto tried = ask(milliseconds(0));
  env().run_for(milliseconds(500));
  EXPECT_FALSE(asking->times_told);
  EXPECT_EQ(tried->times_told, 1);
  EXPECT_EQ(tried->ec, errc::timed_out);
  EXPECT_EQ(script().claim_calls, 2);
}

TEST_F(CachedLockTest, AWaitInsideTheProcessEndsInTime) {
  auto first = hold();
  auto late = ask(seconds(2));
  env().run_for(seconds(2));
  EXPECT_EQ(late->ec, errc::timed_out);
  give_back(*first);
  env().run_for(seconds(2));
  EXPECT_EQ(late->times_told, 1);
  EXPECT_TRUE(take());
}

TEST_F(CachedLockTest, AWaitInsideTheProcessCanBeCancelled) {
  auto first = hold();
  auto second = ask();
  auto third = ask();
  second->cancel();
  EXPECT_EQ(second->ec, errc::cancelled);
  give_back(*first);
  EXPECT_TRUE(third->handle);
  EXPECT_EQ(second->times_told, 1);
}

TEST_F(CachedLockTest, WhoGivesUpOnTheWayLeavesItToTheNext) {
  auto first = hold();
  auto second = ask();
  first->handle = LockHandle();  // it is being passed on
  second->cancel();
  settle();
  EXPECT_TRUE(take());
  EXPECT_EQ(releases(), 0U);
}

TEST_F(CachedLockTest, OneOfTheProcessAsksTheStoreForAll) {
  ClaimAnswer waits;
  waits.status = ClaimStatus::waiting;
  script().claims.push_back({waits, {}});
  auto first = ask();
  auto second = ask();
  EXPECT_EQ(script().claim_calls, 1);
  first->cancel();
  settle();
  EXPECT_EQ(first->ec, errc::cancelled);
  EXPECT_TRUE(second->handle);
}

TEST_F(CachedLockTest, ALossLetsTheNextOneAsk) {
  auto first = hold();
  auto second = ask();
  sink().on_claim_gone(script().granted.back(), LossReason::removed);
  settle();
  EXPECT_TRUE(second->handle);
  EXPECT_EQ(second->handle.token(), 2U);
  EXPECT_EQ(first->handle.state(), HandleState::lost);
}

TEST_F(CachedLockTest, WhatACommandHasInheritedIsNotKept) {
  auto held = hold();
  inheritable_descriptor(held->handle);
  give_back(*held);
  EXPECT_EQ(releases(), 1U);
  EXPECT_TRUE(script().granted.back()->is_inherited());
}

TEST_F(CachedLockTest, AStoreThatClosesTellsWhoWaitsAndGivesAllBack) {
  auto first = hold();
  const auto stop = first->handle.stop_token();
  auto second = ask();
  asio::co_spawn(env().executor(), fixture.store->close(), [](const std::exception_ptr&) {});
  settle();
  EXPECT_EQ(second->ec, errc::closed);
  EXPECT_EQ(first->handle.state(), HandleState::lost);
  EXPECT_EQ(first->handle.loss_reason(), LossReason::closed);
  EXPECT_EQ(releases(), 0U);  // its owner may be at work still
  give_back(*first);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(CachedLockTest, AStoreThatClosesGivesBackWhatNobodyUses) {
  give_back(*hold());
  asio::co_spawn(env().executor(), fixture.store->close(), [](const std::exception_ptr&) {});
  settle();
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(take());
}

TEST_F(CachedLockTest, UnderAGateItIsNotKept) {
  policy = std::make_shared<GatePolicy>();
  give_back(*hold());
  EXPECT_EQ(releases(), 1U);
}

/// Counts the notifications of `asked`, those of before included.
std::shared_ptr<int> notifications_of(Asked& asked) {
  auto count = std::make_shared<int>(0);
  asked.handle.on_contended([count] { ++*count; });
  return count;
}

TEST_F(CachedLockTest, TheNextUserIsNotifiedOfTheWaitersBehindIt) {
  auto first = hold();
  auto second = ask();
  auto third = ask();
  give_back(*first);
  ASSERT_TRUE(second->handle);
  const auto of_second = notifications_of(*second);
  settle();
  EXPECT_EQ(*of_second, 1);
  give_back(*second);
  ASSERT_TRUE(third->handle);
  const auto of_third = notifications_of(*third);
  settle();
  EXPECT_EQ(*of_third, 0) << "it is the last one";
}

TEST_F(CachedLockTest, TheNextUserIsNotifiedOfAWaiterOutsideTheProcess) {
  keep(kCache, 2);
  auto first = hold();
  auto second = ask();
  contend();
  give_back(*first);
  ASSERT_TRUE(second->handle);
  EXPECT_EQ(script().claim_calls, 1);
  const auto notified = notifications_of(*second);
  settle();
  EXPECT_EQ(*notified, 1);
}

}  // namespace
}  // namespace dlock::tests
