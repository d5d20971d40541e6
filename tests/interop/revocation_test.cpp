// SPDX-License-Identifier: Apache-2.0
//
// Curator's revocation, both ways: its Revoker asks a holder of ours, and we ask a revocable mutex.
#include <atomic>

#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropRevocation : public PairTest {};

TEST_P(InteropRevocation, TheirRevokerAsksAHolderOfOurs) {
  auto ours = open(url());
  std::atomic<int> asked = 0;
  auto held = ours.lock(name)->acquire({.wait = 60s, .revocable = true});
  held.on_revoke([&asked](const Revocation& how) {
    EXPECT_TRUE(how.who.empty());
    EXPECT_FALSE(how.within);
    ++asked;
  });
  ForeignClient theirs(their_program());
  EXPECT_EQ(theirs.revoke(name), "done");
  ASSERT_TRUE(eventually(patience(), [&] { return asked == 1; }));
  EXPECT_EQ(theirs.revoke(name), "done");
  ASSERT_TRUE(eventually(patience(), [&] { return asked == 2; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(theirs.try_acquire(name));
  EXPECT_EQ(theirs.release(), "done");
}

TEST_P(InteropRevocation, WeAskTheirRevocableMutex) {
  auto ours = open(url());
  ForeignClient theirs(their_program());
  ASSERT_EQ(theirs.acquire_revocable(name), "done");
  const auto token = ours.status(name).token;
  const auto asked = ours.ask(name, token, 30s);
  EXPECT_EQ(asked.token, token);
  EXPECT_FALSE(asked.heard) << "a client of Curator's does not say";
  EXPECT_EQ(theirs.was_asked(), "done");
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_TRUE(ours.lock(name)->try_acquire({.wait = 60s}));
}

INSTANTIATE_TEST_SUITE_P(With, InteropRevocation, testing::Values(curator()), name_of);

}  // namespace
}  // namespace dlock::interop
