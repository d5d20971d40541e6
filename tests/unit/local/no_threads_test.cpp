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
