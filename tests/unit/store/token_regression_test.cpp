// SPDX-License-Identifier: Apache-2.0
//
// A store whose tokens go back: what it grants is never handed out.
#include <gtest/gtest.h>

#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<StoreFixture::Outcome> acquire_and_release(StoreFixture& fixture,
                                                           std::uint64_t token,
                                                           const std::string& name = "orders/42") {
  fixture.script().last_token = token - 1;
  auto got = fixture.acquire(seconds(5), name);
  fixture.env().run_for(seconds(1));
  if (got->handle) {
    EXPECT_EQ(got->handle.token(), token);
    got->handle = LockHandle();
    fixture.env().run_for(seconds(1));
  }
  return got;
}

TEST(TokenRegression, TheGrantIsGivenBackAndTheAcquireFails) {
  StoreFixture fixture;
  EXPECT_FALSE(acquire_and_release(fixture, 900)->ec);
  const auto releases = fixture.script().release_searches.size();
  for (const std::uint64_t token : {5U, 899U, 900U}) {
    const auto got = acquire_and_release(fixture, token);
    EXPECT_EQ(got->ec, errc::token_regressed) << token;
    EXPECT_EQ(got->times_told, 1);
  }
  EXPECT_EQ(fixture.script().release_searches.size(), releases + 3) << "each was given back";
  EXPECT_FALSE(acquire_and_release(fixture, 901)->ec) << "above: good again";
}

TEST(TokenRegression, TheErrorNamesTheStoreBothTokensAndWhatToDo) {
  StoreFixture fixture;
  acquire_and_release(fixture, 900);
  Diagnostics diagnostics;
  fixture.script().last_token = 4;
  core::Acquisition::Request request;
  request.name = "orders/42";
  request.diagnostics = &diagnostics;
  fixture.store->acquire(std::make_shared<core::Acquisition>(fixture.store, request,
                                                             [](error_code, const LockHandle&) {}));
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(diagnostics.store, "scripted");
  EXPECT_EQ(diagnostics.lock, "orders/42");
  for (const auto* part : {"'scripted'", "token 5,", "token 900", "Bring the store's data back"}) {
    EXPECT_NE(diagnostics.server_text.find(part), std::string::npos)
        << part << " in " << diagnostics.server_text;
  }
}

TEST(TokenRegression, WhereAnotherStoresTokenIsShownItIsNoReasonToRefuse) {
  StoreFixture fixture;
  acquire_and_release(fixture, 900);
  fixture.script().last_token = 4;
  core::Acquisition::Request request;
  request.name = "orders/42";
  request.token_may_go_back = true;
  auto handle = std::make_shared<LockHandle>();
  fixture.store->acquire(std::make_shared<core::Acquisition>(
      fixture.store, request, [handle](error_code, LockHandle got) { *handle = std::move(got); }));
  fixture.env().run_for(seconds(1));
  ASSERT_TRUE(*handle);
  EXPECT_EQ(handle->token(), 5U);
  *handle = LockHandle();
  fixture.env().run_for(seconds(1));
  EXPECT_EQ(acquire_and_release(fixture, 6)->ec, errc::token_regressed) << "for all others it is";
}

TEST(TokenRegression, NamesCountForThemselves) {
  StoreFixture fixture;
  EXPECT_FALSE(acquire_and_release(fixture, 900, "a")->ec);
  EXPECT_FALSE(acquire_and_release(fixture, 5, "b")->ec);
  EXPECT_EQ(acquire_and_release(fixture, 5, "b")->ec, errc::token_regressed);
}

TEST(TokenRegression, AStoreWithoutTokensIsNotAsked) {
  StoreFixture fixture;
  fixture.script().tokens = false;
  for (int i = 0; i < 2; ++i) {
    auto got = fixture.acquire();
    fixture.env().run_for(seconds(1));
    ASSERT_TRUE(got->handle);
    EXPECT_FALSE(got->handle.token());
    EXPECT_FALSE(got->handle.sequencer());
  }
}

// Only what was handed out counts: a grant that came too late to be believed is asked for again,
// and has the same token then.
TEST(TokenRegression, TheSameGrantAskedForAgainIsGood) {
  StoreFixture fixture;
  ClaimAnswer late;
  late.status = ClaimStatus::granted;
  late.validity = {TimePoint{}, TimePoint{}};
  fixture.script().claims.push_back({late, {}});
  fixture.script().last_token = 6;
  auto got = fixture.acquire();
  fixture.env().run_until(fixture.env().now());  // granted 7, and not believed
  fixture.script().last_token = 6;
  fixture.env().run_for(seconds(1));
  ASSERT_TRUE(got->handle);
  EXPECT_EQ(got->handle.token(), 7U);
  EXPECT_EQ(got->handle.sequencer()->to_string(), "dlock1:exclusive:7:scripted:orders/42");
}

// Who gave up is told that, not what became of the grant that came after it.
TEST(TokenRegression, AGrantAfterGivingUpIsJustGivenBack) {
  StoreFixture fixture;
  acquire_and_release(fixture, 900);
  ClaimAnswer granted;
  granted.status = ClaimStatus::granted;
  fixture.script().claims.push_back({granted, milliseconds(1800)});
  fixture.script().last_token = 4;
  const auto releases = fixture.script().release_searches.size();
  auto got = fixture.acquire(milliseconds(1500));
  fixture.env().run_for(seconds(3));
  EXPECT_EQ(got->ec, errc::unavailable);
  EXPECT_EQ(got->times_told, 1);
  EXPECT_EQ(fixture.script().release_searches.size(), releases + 1);
}

}  // namespace
}  // namespace dlock::tests
