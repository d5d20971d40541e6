// SPDX-License-Identifier: Apache-2.0
//
// One lock, two kinds of clients: one holds it and the other does not get it, until the release.
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

// Clients of Curator's mutex do not see its readers: readers_test.cpp has those that do.
TEST_P(InteropExclusion, OurReadersAreALockThatWeHold) {
  constexpr AcquireOptions kReader{.wait = 0ms, .mode = Mode::shared};
  if (store_->has_sessions()) return;
  error_code ec;
  auto one = lock_->acquire(kReader, {}, ec);
  if (ec == errc::invalid_argument) return;  // it has no readers
  ASSERT_FALSE(ec) << ec.message();
  ForeignClient theirs(their_program());
  auto two = lock_->acquire(kReader);
  EXPECT_FALSE(theirs.try_acquire(name)) << "a writer beside readers";
  EXPECT_FALSE(one.release());
  EXPECT_FALSE(theirs.try_acquire(name)) << "a writer beside a reader";
  EXPECT_EQ(two.state(), HandleState::held);
  EXPECT_FALSE(two.release());
  ASSERT_TRUE(theirs.try_acquire(name));
  EXPECT_FALSE(lock_->try_acquire(kReader)) << "a reader beside a writer";
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_TRUE(lock_->try_acquire(kReader));
}

INSTANTIATE_TEST_SUITE_P(With, InteropExclusion, testing::ValuesIn(sharing_peers()), name_of);
INSTANTIATE_TEST_SUITE_P(OnThreeServers, InteropExclusion, testing::ValuesIn(placing_peers()),
                         name_of);

}  // namespace
}  // namespace dlock::interop
