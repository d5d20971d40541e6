// SPDX-License-Identifier: Apache-2.0
//
// Curator's InterProcessSemaphoreV2 and our semaphore: the same three permits.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropSemaphore : public PairTest {
 protected:
  Semaphore slots() { return locks_.semaphore(name, 3); }
  bool free_becomes(std::uint64_t count) {
    return eventually(patience(), [&] { return locks_.semaphore_status(name).free() == count; });
  }
};

TEST_P(InteropSemaphore, TheirLeasesCountAsOursDo) {
  ForeignClient one(their_program());
  ForeignClient two(their_program());
  ASSERT_TRUE(one.try_acquire(name));
  EXPECT_FALSE(slots().try_acquire(3)) << "four of three";
  auto ours = slots().acquire(2, {.wait = 60s});
  const auto status = locks_.semaphore_status(name);
  EXPECT_EQ(status.holders.size(), 2U);
  EXPECT_EQ(status.held(), 3U);
  EXPECT_FALSE(slots().try_acquire()) << "four of three";
  EXPECT_FALSE(two.try_acquire(name)) << "four of three";
  EXPECT_FALSE(ours.release());
  EXPECT_TRUE(two.try_acquire(name));
  EXPECT_EQ(one.release(), "done");
  EXPECT_EQ(two.release(), "done");
  EXPECT_TRUE(slots().acquire(3, {.wait = 60s}));
}

TEST_P(InteropSemaphore, EachIsLetInWhenTheOtherLeaves) {
  auto ours = slots().acquire(3);
  ForeignClient theirs(their_program());
  theirs.begin_acquire(name);
  EXPECT_TRUE(eventually(patience(),
                         [&] {
                           const auto status = locks_.semaphore_status(name);
                           return status.waiting.size() + status.holders.size() == 2;
                         }))
      << "in Curator's way who is first in line has its lease already; holders: "
      << locks_.semaphore_status(name).holders.size()
      << ", waiting: " << locks_.semaphore_status(name).waiting.size();
  EXPECT_FALSE(ours.release());
  ASSERT_TRUE(theirs.granted());
  auto all = std::async(std::launch::async, [&] { return slots().acquire(3, {.wait = 60s}); });
  EXPECT_TRUE(
      eventually(patience(), [&] { return locks_.semaphore_status(name).waiting.size() == 1; }));
  EXPECT_FALSE(theirs.try_acquire(name)) << "behind ours";
  theirs.kill9();
  EXPECT_TRUE(all.get()) << "a dead client's lease comes back";
  EXPECT_TRUE(free_becomes(3));
}

INSTANTIATE_TEST_SUITE_P(With, InteropSemaphore, testing::Values(curator_permits()), name_of);

}  // namespace
}  // namespace dlock::interop
