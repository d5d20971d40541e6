// SPDX-License-Identifier: Apache-2.0
//
// How a coordinator locks and pauses: what it reports, and that stop() ends all of it.
#include "migration/locker.hpp"

#include <gtest/gtest.h>

#include "dlock/error.hpp"
#include "tests/support/two_stores.hpp"

namespace dlock::tests {
namespace {

using core::migration::LockedFor;
using core::migration::Locker;
using core::migration::one_try;
using core::migration::StepReport;
using core::migration::Verdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

class LockerTest : public testing::Test {
 protected:
  core::Acquisition::Request request(bool once) {
    auto request = one_try(*two.s, "a");
    request.limits.once = once;
    return request;
  }
  LockedFor lock_once() { return two.run(locker.lock(two.s, request(true))); }
  StepReport report(LockedFor locked) {
    return two.run(locker.not_locked(two.s, "a", std::move(locked)));
  }

  TwoStores two;
  Locker locker;
};

TEST_F(LockerTest, KeepsNothingOfALockThatIsReleased) {
  lock_once().handle = LockHandle();
  two.run_for(seconds(60));
  const auto users = two.s.use_count();
  for (int i = 0; i < 5; ++i) {
    auto locked = lock_once();
    EXPECT_TRUE(locked.handle);
    locked.handle = LockHandle();
    two.run_for(seconds(60));
  }
  EXPECT_EQ(two.s.use_count(), users);
}

TEST_F(LockerTest, ReportsTheHolderThatItWaitsFor) {
  const auto held = lock_once();
  ASSERT_TRUE(held.handle);
  auto busy = lock_once();
  EXPECT_FALSE(busy.handle);
  EXPECT_EQ(busy.error, errc::timed_out);
  const auto waiting = report(std::move(busy));
  EXPECT_EQ(waiting.name, "a");
  EXPECT_EQ(waiting.verdict, Verdict::waiting);
  EXPECT_FALSE(waiting.holder.empty());
  EXPECT_EQ(waiting.text, "waits for its holder in the store 's': " + waiting.holder);
}

TEST_F(LockerTest, ReportsNoHolderOfALockThatIsFreeAgain) {
  lock_once().handle = LockHandle();
  LockedFor late;
  late.error = make_error_code(errc::timed_out);
  const auto waiting = report(std::move(late));
  EXPECT_EQ(waiting.verdict, Verdict::waiting);
  EXPECT_EQ(waiting.holder, "");
  EXPECT_EQ(waiting.text, "waits for its holder in the store 's'");
}

TEST_F(LockerTest, ReportsAFailureAsRefusedUnlessItMayPass) {
  for (const auto& [error, verdict] :
       {std::pair(errc::unavailable, Verdict::unreachable),
        std::pair(errc::access_denied, Verdict::refused),
        std::pair(errc::cancelled, Verdict::stopped), std::pair(errc::closed, Verdict::stopped)}) {
    lock_once().handle = LockHandle();
    LockedFor failed;
    failed.error = make_error_code(error);
    EXPECT_EQ(report(std::move(failed)).verdict, verdict) << failed.error.message();
  }
}

TEST_F(LockerTest, StopEndsALockAndAPause) {
  const auto held = lock_once();
  const auto waiting = two.begin(locker.lock(two.s, request(false)));
  const auto pausing = two.begin(locker.pause(two.env(), seconds(60)));
  two.run_for(seconds(1));
  ASSERT_FALSE(*waiting);
  ASSERT_FALSE(*pausing);
  EXPECT_FALSE(locker.stopped());
  locker.stop();
  two.run_for(seconds(1));
  ASSERT_TRUE(*waiting);
  ASSERT_TRUE(*pausing);
  EXPECT_EQ((*waiting)->error, errc::cancelled);
  EXPECT_FALSE(**pausing);
  EXPECT_TRUE(locker.stopped());
  EXPECT_EQ(report(std::move(**waiting)).text, "stopped");
  EXPECT_EQ(lock_once().error, errc::cancelled);
  EXPECT_FALSE(two.run(locker.pause(two.env(), milliseconds(1))));
}

TEST_F(LockerTest, PausesForTheWholeTime) {
  const auto pausing = two.begin(locker.pause(two.env(), seconds(60)));
  two.run_for(seconds(60) - milliseconds(1));
  EXPECT_FALSE(*pausing);
  two.run_for(milliseconds(1));
  ASSERT_TRUE(*pausing);
  EXPECT_TRUE(**pausing);
}

}  // namespace
}  // namespace dlock::tests
