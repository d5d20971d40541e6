// SPDX-License-Identifier: Apache-2.0
//
// Who was stopped for longer than the store waits, and goes on in the belief that the lock is his:
// what he does then takes nothing from the one who has got it meanwhile.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropLate : public PairTest {};

TEST_P(InteropLate, TheirsTakesNothingOfOurs) {
  // Where a key has its time, theirs need not last as long as ours.
  ForeignClient theirs(their_program(store_->has_sessions() ? lease : 1s));
  ASSERT_TRUE(theirs.try_acquire(name));
  const auto before = holder();
  ASSERT_TRUE(theirs.pause());
  auto handle = lock_->acquire({.wait = 60s});
  ASSERT_TRUE(theirs.resume());
  const auto mine = holder();
  EXPECT_NE(mine, before);
  if (peer().extends) {
    const auto said = theirs.extend();
    EXPECT_FALSE(said.empty() || said == "done") << said;
    EXPECT_EQ(holder(), mine);
  }
  const auto said = theirs.release();
  EXPECT_FALSE(said.empty());
  EXPECT_EQ(said == "done", peer().silent_about_loss) << said;
  EXPECT_EQ(holder(), mine);
  EXPECT_FALSE(theirs.try_acquire(name)) << "two holders";
  EXPECT_NO_THROW(handle.check());
  EXPECT_FALSE(handle.release()) << "it was ours until now";
  EXPECT_TRUE(theirs.try_acquire(name));
}

TEST_P(InteropLate, OursTakesNothingOfTheirs) {
  ForeignClient theirs(their_program(4 * lease));
  testkit::Process ours(our_program());
  const auto held = ours.read_line(patience());
  ASSERT_TRUE(held) << ours.collected_stderr();
  const auto before = holder();
  ASSERT_TRUE(ours.pause());
  theirs.begin_acquire(name);
  ASSERT_TRUE(theirs.granted());
  ASSERT_TRUE(ours.resume());
  const auto status = ours.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 76) << "lost";
  EXPECT_NE(ours.unread_stdout().find(R"("event":"lost")"), std::string::npos);
  EXPECT_NE(holder(), before);
  EXPECT_NE(holder(), "");
  expect_we_do_not_get_it();
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_TRUE(lock_->try_acquire());
}

INSTANTIATE_TEST_SUITE_P(With, InteropLate, testing::ValuesIn(sharing_peers()), name_of);

}  // namespace
}  // namespace dlock::interop
