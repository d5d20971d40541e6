// SPDX-License-Identifier: Apache-2.0
//
// Who holds, the other does not get it; and who gives it back, the other does.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropExclusion : public PairTest {};

TEST_P(InteropExclusion, WeDoNotGetWhatTheyHold) {
  ForeignClient theirs(their_program());
  ASSERT_TRUE(theirs.try_acquire(name));
  expect_we_do_not_get_it();
  const auto status = locks_.status(name);
  EXPECT_TRUE(status.held);
  EXPECT_FALSE(status.sealed);
  const auto holds = holder();
  EXPECT_FALSE(holds.empty()) << "theirs, as the store has it";
  EXPECT_EQ(status.owner.value_or(Owner{}).pid, 0) << "which is no metadata of ours";
  // A node of theirs has a number as ours do; a value of theirs has none.
  EXPECT_EQ(status.token.has_value(), store_->has_sessions());
  if (status.remaining) {
    EXPECT_LE(*status.remaining, lease + 1s);
  }
  EXPECT_EQ(theirs.release(), "done");
  const auto handle = lock_->try_acquire();
  ASSERT_TRUE(handle);
  EXPECT_NE(holder(), holds);
}

TEST_P(InteropExclusion, TheyDoNotGetWhatWeHold) {
  ForeignClient theirs(their_program());
  auto handle = lock_->acquire();
  EXPECT_FALSE(theirs.try_acquire(name)) << "two holders";
  EXPECT_FALSE(theirs.try_acquire(name)) << "two holders";
  EXPECT_EQ(handle.state(), HandleState::held);
  EXPECT_FALSE(handle.release());
  EXPECT_TRUE(theirs.try_acquire(name));
  EXPECT_EQ(theirs.release(), "done");
}

INSTANTIATE_TEST_SUITE_P(With, InteropExclusion, testing::ValuesIn(sharing_peers()), name_of);

}  // namespace
}  // namespace dlock::interop
