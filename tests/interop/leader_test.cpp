// SPDX-License-Identifier: Apache-2.0
//
// Curator's LeaderSelector and our Leader are candidates for one lead.
#include "dlock/leader.hpp"

#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropLeader : public PairTest {
 protected:
  bool leads(const Leader& leader) const {
    return eventually(patience(), [&] { return leader.is_leader(); });
  }
};

TEST_P(InteropLeader, TheyLeadInTurnInTheOrderOfTheirComing) {
  ForeignClient theirs(their_program());
  Leader ours(locks_, name, {});
  std::uint64_t token = 0;
  for (int round = 0; round < 3; ++round) {
    theirs.begin_acquire(name);
    ASSERT_TRUE(theirs.granted());
    ours.campaign();
    ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
    EXPECT_FALSE(ours.is_leader()) << "two leaders";
    EXPECT_TRUE(ours.who());
    EXPECT_EQ(theirs.release(), "done");
    ASSERT_TRUE(leads(ours));
    EXPECT_GT(ours.token().value(), token);
    token = ours.token().value();
    EXPECT_FALSE(theirs.try_acquire(name)) << "two leaders";
    ours.resign();
  }
}

TEST_P(InteropLeader, OursFollowsTheirsThatIsKilledWhenItsSessionHasEnded) {
  ForeignClient theirs(their_program());
  theirs.begin_acquire(name);
  ASSERT_TRUE(theirs.granted());
  Leader ours(locks_, name, {});
  ours.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
  theirs.kill9();
  EXPECT_TRUE(leads(ours));
  ours.resign();
}

INSTANTIATE_TEST_SUITE_P(With, InteropLeader, testing::Values(curator_leader()), name_of);

}  // namespace
}  // namespace dlock::interop
