// SPDX-License-Identifier: Apache-2.0
//
// The local store while the system has no thread to give: an error from the call that says so, and
// all works again when there are threads.
#include <gtest/gtest.h>

#include "testkit/no_threads.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local {
namespace {

using test::Store;
using testkit::NoThreads;
using testkit::TempDir;
using namespace std::chrono_literals;

TEST(LocalNoThreads, AConnectSaysSoAndTheNextOneWorks) {
  const TempDir dir("dlock-local");
  Store store((dir / "locks").string());
  {
    const NoThreads none;
    const auto failure = store.run(store.backend->connect(Store::in(300ms)));
    EXPECT_EQ(failure.error, errc::unavailable);
    EXPECT_NE(failure.text.find("RLIMIT_NPROC"), std::string::npos) << failure.text;
    EXPECT_NE(failure.text.find("pids.max"), std::string::npos) << failure.text;
  }
  EXPECT_FALSE(store.connect().error);
}

TEST(LocalNoThreads, ANewLockAndAStatusSaySoAndWorkLater) {
  const TempDir dir("dlock-local");
  Store store((dir / "locks").string());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  {
    const NoThreads none;
    const auto answer = store.run(store.backend->claim(claim, Store::in(300ms)));
    EXPECT_EQ(answer.status, ClaimStatus::unavailable);
    EXPECT_NE(answer.failure.text.find("RLIMIT_NPROC"), std::string::npos) << answer.failure.text;
    const auto status = store.run(store.backend->inspect("a", Store::in(300ms)));
    EXPECT_EQ(status.failure.error, errc::unavailable);
  }
  EXPECT_EQ(store.ask(claim).status, ClaimStatus::granted);
  EXPECT_TRUE(store.status("a").held);
  EXPECT_EQ(store.release(claim), ReleaseStatus::released);
}

// Else its coroutine, and all that this holds, would be left behind by a loop that ends.
TEST(LocalNoThreads, WhoWaitsForOneIsToldOfTheClose) {
  const TempDir dir("dlock-local");
  Store store((dir / "locks").string());
  ASSERT_FALSE(store.connect().error);
  const NoThreads none;
  std::optional<Result<LockStatus>> early;
  store.start(store.backend->inspect("a", Store::in(1h)), early);
  store.env.context().poll();
  ASSERT_FALSE(early);
  store.run(store.backend->close(Store::soon()));
  ASSERT_TRUE(store.run_until([&] { return early.has_value(); }));
  EXPECT_EQ(early->failure.error, errc::closed);
  const auto late = store.run(store.backend->inspect("a", Store::in(1h)));
  EXPECT_EQ(late.failure.error, errc::closed);
}

// What is there already needs no thread.
TEST(LocalNoThreads, KnownLocksAreGrantedAndGivenBack) {
  const TempDir dir("dlock-local");
  Store store((dir / "locks").string());
  ASSERT_FALSE(store.connect().error);
  const auto first = store.make("a");
  ASSERT_EQ(store.ask(first).status, ClaimStatus::granted);
  EXPECT_EQ(store.release(first), ReleaseStatus::released);
  const NoThreads none;
  const auto second = store.make("a");
  EXPECT_EQ(store.ask(second).status, ClaimStatus::granted);
  EXPECT_EQ(store.release(second), ReleaseStatus::released);
}

}  // namespace
}  // namespace dlock::local
