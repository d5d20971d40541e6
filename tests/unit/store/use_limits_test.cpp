// SPDX-License-Identifier: Apache-2.0
//
// A lock that is held too long, or whose holder makes no progress: lost on time, told, and only
// then given back, with the production coroutines under virtual time.
#include "core/store/use_limits.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "core/store/cached_lock.hpp"
#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using core::CachedLock;
using core::HandleAccess;
using core::UseLimit;
using std::chrono::milliseconds;
using std::chrono::seconds;

class UseLimits : public ::testing::Test {
 protected:
  LockHandle hold(const UseLimit& limit) {
    auto got = fixture.acquire();
    settle();
    bound(got->handle, limit);
    return std::move(got->handle);
  }
  /// As the engine does before a user has it.
  void bound(const LockHandle& handle, const UseLimit& limit) {
    const auto of = HandleAccess::hold(handle);
    of->bound().begin(limit, env().now());
    fixture.store->limit_use(of);
    of->hand_out();
  }
  void settle() { env().run_for(milliseconds(1)); }
  VirtualEnv& env() { return fixture.env(); }
  std::size_t releases() { return fixture.script().release_searches.size(); }

  StoreFixture fixture;
};

TEST_F(UseLimits, MaxHoldIsItsEndWhateverTheRenewals) {
  auto held = hold({.max_hold = seconds(30)});
  std::vector<LossReason> told;
  held.on_state([&](HandleState, LossReason why) { told.push_back(why); });
  env().run_for(seconds(29));
  EXPECT_GE(fixture.script().extend_times.size(), 9U);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_LE(*held.remaining(), seconds(1));
  env().run_for(seconds(1));
  settle();
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(told, (std::vector{LossReason::max_hold}));
  EXPECT_EQ(releases(), 1U);  // nobody else is waited for: the callback has returned
  EXPECT_EQ(held.release(), errc::lock_lost);
  settle();
  EXPECT_EQ(releases(), 1U);
}

TEST_F(UseLimits, G03_ItIsLostOnTimeThoughTheLoopIsBlocked) {
  const auto held = hold({.max_hold = seconds(3)});
  env().pause_for(seconds(3));  // below the lease, and no timer has come
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::max_hold);
  EXPECT_EQ(releases(), 0U);
  settle();
  EXPECT_EQ(releases(), 1U);
}

TEST_F(UseLimits, AfterTheLeaseItIsTheLeaseThatIsOver) {
  const auto held = hold({.max_hold = seconds(3)});
  env().pause_for(seconds(20));
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::expired);
}

TEST_F(UseLimits, WhoWorksIsWaitedForWhileItIsRenewed) {
  auto held = hold({.max_hold = seconds(3)});
  const auto stop = held.stop_token();
  env().run_for(seconds(4));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_EQ(releases(), 0U);
  const auto renewals = fixture.script().extend_times.size();
  env().run_for(seconds(3));
  EXPECT_GT(fixture.script().extend_times.size(), renewals);
  EXPECT_EQ(releases(), 0U);
  held = LockHandle();
  settle();
  EXPECT_EQ(releases(), 1U);
  EXPECT_FALSE(fixture.script().granted.back()->is_lost());
}

// A hung worker does not keep the lock for ever; a lock delay keeps him out, if there is one.
TEST_F(UseLimits, WhoHangsIsWaitedForNoLongerThanReleaseTimeout) {
  const auto held = hold({.progress_every = seconds(3)});
  const auto stop = held.stop_token();
  env().run_for(seconds(3) + seconds(5) - milliseconds(10));
  EXPECT_EQ(held.loss_reason(), LossReason::no_progress);
  EXPECT_EQ(releases(), 0U);
  env().run_for(milliseconds(20));
  EXPECT_EQ(releases(), 1U);
  EXPECT_TRUE(fixture.script().granted.back()->is_lost());
}

TEST_F(UseLimits, ProgressMovesItsEndAndNoTimer) {
  auto held = hold({.progress_every = seconds(3)});
  for (int i = 0; i < 20; ++i) {
    env().run_for(seconds(2));
    held.progress();
    ASSERT_EQ(held.state(), HandleState::held) << i;
  }
  env().run_for(seconds(3));
  EXPECT_EQ(held.loss_reason(), LossReason::no_progress);
}

TEST_F(UseLimits, ProgressThatComesTooLateChangesNothing) {
  auto held = hold({.progress_every = seconds(3)});
  env().pause_for(seconds(4));
  held.progress();
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::no_progress);
}

TEST_F(UseLimits, ProgressDoesNotMoveMaxHold) {
  auto held = hold({.max_hold = seconds(5), .progress_every = seconds(3)});
  env().run_for(seconds(2));
  held.progress();
  env().run_for(seconds(2));
  held.progress();
  env().run_for(seconds(1));
  EXPECT_EQ(held.loss_reason(), LossReason::max_hold);
}

TEST_F(UseLimits, WhoWasGivenBackOrLostBeforeIsLeftAlone) {
  { const auto held = hold({.max_hold = seconds(3)}); }
  settle();
  EXPECT_EQ(releases(), 1U);
  auto gone = hold({.max_hold = seconds(3)});
  fixture.script().sink->on_claim_gone(fixture.script().granted.back(), LossReason::broken);
  env().run_for(seconds(10));
  EXPECT_EQ(releases(), 1U);
  EXPECT_EQ(gone.loss_reason(), LossReason::broken);
}

TEST_F(UseLimits, ALimitBeyondTheClockIsNone) {
  const auto held = hold({.max_hold = milliseconds::max(), .progress_every = milliseconds::max()});
  env().run_for(seconds(100));
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_F(UseLimits, TenThousandShortOnesLeaveNothingBehind) {
  for (int i = 0; i < 10'000; ++i) {
    { const auto held = hold({.max_hold = std::chrono::hours(1)}); }
    settle();
  }
  EXPECT_EQ(releases(), 10'000U);
}

class UseOfACachedLock : public UseLimits {
 protected:
  UseOfACachedLock() { fixture.script().capabilities.can_tell_contention = true; }

  struct Got {
    error_code ec;
    LockHandle handle;
    int told = 0;
  };
  std::shared_ptr<Got> ask(std::optional<std::uint32_t> max_queue = std::nullopt) {
    auto got = std::make_shared<Got>();
    core::Acquisition::Request request;
    request.name = "orders/42";
    request.limits.connect_timeout = seconds(15);
    request.max_queue = max_queue;
    lock->acquire(fixture.store, std::move(request),
                  std::make_shared<detail::AcquireHandler>([got](error_code ec, LockHandle handle) {
                    ++got->told;
                    got->ec = ec;
                    got->handle = std::move(handle);
                  }));
    settle();
    return got;
  }
  std::shared_ptr<CachedLock> lock =
      std::make_shared<CachedLock>(CachedLock::Limits{std::chrono::hours(1), 8});
};

TEST_F(UseOfACachedLock, MaxHoldCountsForEachHolderNotForTheClaim) {
  auto first = ask();
  bound(first->handle, {.max_hold = seconds(3)});
  env().run_for(seconds(2));
  first->handle = LockHandle();
  settle();
  const auto second = lock->take();
  ASSERT_TRUE(second);
  const LockHandle handle(second);
  bound(handle, {.max_hold = seconds(3)});
  env().run_for(seconds(2));
  EXPECT_EQ(handle.state(), HandleState::held);
  EXPECT_EQ(handle.token(), 1U);
  env().run_for(seconds(1));
  settle();
  EXPECT_EQ(handle.loss_reason(), LossReason::max_hold);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(UseOfACachedLock, TheNextHolderHasAnotherToken) {
  auto first = ask();
  bound(first->handle, {.progress_every = seconds(3)});
  const auto stop = first->handle.stop_token();
  const auto second = ask();
  env().run_for(seconds(4));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_FALSE(second->handle);
  EXPECT_EQ(first->handle.release(), errc::lock_lost);
  settle();
  EXPECT_EQ(releases(), 1U);
  ASSERT_TRUE(second->handle);
  EXPECT_EQ(second->handle.token(), 2U);
}

TEST_F(UseOfACachedLock, WhoHangsInItIsNotWaitedForForEver) {
  const auto first = ask();
  bound(first->handle, {.progress_every = seconds(3)});
  const auto stop = first->handle.stop_token();
  const auto second = ask();
  env().run_for(seconds(9));
  EXPECT_TRUE(second->handle);
  first->handle = LockHandle();
  settle();
  EXPECT_EQ(second->handle.state(), HandleState::held);
  EXPECT_EQ(releases(), 1U);
}

TEST_F(UseOfACachedLock, ItsHolderHearsOfWhoWaitsInTheProcess) {
  const auto first = ask();
  int told = 0;
  first->handle.on_contended([&told] { ++told; });
  settle();
  EXPECT_EQ(told, 0);
  const auto second = ask();
  const auto third = ask();
  EXPECT_EQ(told, 1);
}

TEST_F(UseOfACachedLock, TheQueueInTheProcessIsBounded) {
  const auto first = ask();
  EXPECT_EQ(ask(0U)->ec, errc::queue_full);
  const auto second = ask(1U);
  EXPECT_EQ(second->told, 0);
  EXPECT_EQ(ask(1U)->ec, errc::queue_full);
  const auto third = ask(2U);
  EXPECT_EQ(third->told, 0);
}

TEST_F(UseLimits, TheQueueInTheStoreIsBoundedByTheFirstPlace) {
  fixture.script().capabilities.can_bound_queue = true;
  const auto wait_behind = [this](std::size_t others) {
    ClaimAnswer waiting;
    waiting.status = ClaimStatus::waiting;
    waiting.waiting_before = others;
    fixture.script().claims.push_back({waiting, {}});
  };
  const auto bounded = [](core::Acquisition::Request& request) { request.max_queue = 2; };
  wait_behind(2);
  const auto refused = fixture.acquire(std::nullopt, "orders/42", bounded);
  settle();
  EXPECT_EQ(refused->ec, errc::queue_full);
  EXPECT_EQ(releases(), 1U);
  wait_behind(1);
  wait_behind(2);
  const auto waits = fixture.acquire(std::nullopt, "orders/42", bounded);
  settle();
  EXPECT_FALSE(waits->told);
  fixture.script().wake();
  settle();
  EXPECT_FALSE(waits->told);
  fixture.script().wake();
  settle();
  EXPECT_TRUE(waits->handle);
}

TEST_F(UseLimits, WhatTheStoreCannotDoIsRefused) {
  const auto refused = [this](auto with) {
    const auto got = fixture.acquire(std::nullopt, "orders/42", with);
    settle();
    return got->ec == errc::invalid_argument;
  };
  EXPECT_TRUE(refused([](core::Acquisition::Request& request) { request.max_queue = 2; }));
  EXPECT_TRUE(refused([](core::Acquisition::Request& request) { request.revocable = true; }));
  EXPECT_TRUE(
      refused([](core::Acquisition::Request& request) { request.must_tell_contention = true; }));
}

TEST_F(UseLimits, WhoIsAskedIsToldEachTimeAndAlsoLater) {
  auto held = hold({});
  const auto& claim = fixture.script().granted.back();
  fixture.script().sink->on_asked(claim, {"first", seconds(1)});
  std::vector<std::string> told;
  held.on_revoke([&told](const Revocation& how) { told.push_back(how.who); });
  settle();
  EXPECT_EQ(told, (std::vector<std::string>{"first"}));
  fixture.script().sink->on_asked(claim, {"second", std::nullopt});
  settle();
  EXPECT_EQ(told, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(held.state(), HandleState::held);
  held = LockHandle();
  fixture.script().sink->on_asked(claim, {"third", std::nullopt});
  settle();
  EXPECT_EQ(told.size(), 2U);
}

}  // namespace
}  // namespace dlock::tests
