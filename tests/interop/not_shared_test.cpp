// SPDX-License-Identifier: Apache-2.0
//
// Clients that do not share a lock with us, though they are on the same store and call it the same:
// how it is with each, so that no page says otherwise. A test that fails here is good news, and a
// page to be changed.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

/// Their names sort behind ours, or are none of ours to them.
class InteropOneWay : public PairTest {};

TEST_P(InteropOneWay, WeWaitForThem) {
  ForeignClient theirs(their_program());
  ASSERT_TRUE(theirs.try_acquire(name));
  expect_we_do_not_get_it();
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_TRUE(lock_->try_acquire());
}

TEST_P(InteropOneWay, TheyDoNotWaitForUs) {
  ForeignClient theirs(their_program());
  const auto handle = lock_->acquire();
  EXPECT_TRUE(theirs.try_acquire(name)) << "they do";
  EXPECT_EQ(handle.state(), HandleState::held) << "two holders, and ours is not told";
}

INSTANTIATE_TEST_SUITE_P(With, InteropOneWay,
                         testing::Values(kazoo_alone(), tooz_zookeeper(), curator_write_lock()),
                         name_of);

class InteropApart : public PairTest {};

TEST_P(InteropApart, NobodyWaitsForTheOther) {
  ForeignClient theirs(their_program());
  {
    ASSERT_TRUE(theirs.try_acquire(name));
    EXPECT_TRUE(lock_->try_acquire()) << "we wait for them";
    EXPECT_EQ(theirs.release(), "done");
  }
  const auto handle = lock_->acquire();
  EXPECT_TRUE(theirs.try_acquire(name)) << "they wait for us";
  EXPECT_EQ(handle.state(), HandleState::held);
}

INSTANTIATE_TEST_SUITE_P(With, InteropApart, testing::Values(curator_semaphore(), tooz_folder()),
                         name_of);

/// Its leases are children of the path itself, where ours has what it is made of.
class InteropSemaphoresApart : public PairTest {};

TEST_P(InteropSemaphoresApart, NeitherCountsTheOthersAndNeitherIsHarmed) {
  auto slots = locks_.semaphore(name, 3);
  auto ours = slots.acquire(2);
  ForeignClient theirs(their_program());
  ASSERT_TRUE(theirs.try_acquire(name)) << "they wait for us";
  EXPECT_EQ(locks_.semaphore_status(name).held(), 2U) << "their lease is none of ours";
  auto one = slots.try_acquire();
  ASSERT_TRUE(one) << "we wait for them";
  EXPECT_EQ(ours.state(), HandleState::held);
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_FALSE(one->release());
  EXPECT_FALSE(ours.release());
  ASSERT_TRUE(theirs.try_acquire(name));
  EXPECT_TRUE(slots.acquire(3, {.wait = 60s}));
  EXPECT_EQ(locks_.semaphore_status(name).limit, 3U);
  const auto all = locks_.list_semaphores();
  EXPECT_EQ(all.size(), 1U);
  theirs.kill9();
  locks_.set_semaphore(name, 4);
  EXPECT_TRUE(locks_.semaphore(name, 4).acquire(4, {.wait = 60s}));
}

INSTANTIATE_TEST_SUITE_P(With, InteropSemaphoresApart, testing::Values(kazoo_semaphore()), name_of);

}  // namespace
}  // namespace dlock::interop
