// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of who holds: the other gets the lock when the store lets go of it, by the store's own
// times, and not before. Not long after either: another lease is for a machine that is busy.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropDeath : public PairTest {
 protected:
  static void expect_between(Clock::time_point granted, const Expiry& expiry) {
    const auto ms = [](Clock::duration time) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    };
    EXPECT_GE(granted, expiry.earliest) << ms(expiry.earliest - granted) << " ms too early";
    EXPECT_LE(granted, expiry.latest + lease) << ms(granted - expiry.latest) << " ms too late";
  }
};

TEST_P(InteropDeath, OfTheirs) {
  ForeignClient theirs(their_program());
  const auto asked = Clock::now();
  ASSERT_TRUE(theirs.try_acquire(name));
  auto ours = acquire_later();
  if (store_->shows_our_waiters()) {
    ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
  }
  theirs.kill9();
  const auto times = expiry(asked);
  expect_between(ours.get().at, times);
}

TEST_P(InteropDeath, OfOurs) {
  ForeignClient theirs(their_program());
  const auto asked = Clock::now();
  testkit::Process ours(our_program());
  const auto held = ours.read_line(patience());
  ASSERT_TRUE(held) << ours.collected_stderr();
  ASSERT_NE(held->find(R"("event":"held")"), std::string::npos) << *held;
  theirs.begin_acquire(name);
  if (store_->shows_foreign_waiters()) {
    ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
  }
  ours.kill_and_wait();
  const auto times = expiry(asked);
  const auto granted = theirs.granted();
  ASSERT_TRUE(granted);
  expect_between(*granted, times);
  EXPECT_EQ(theirs.release(), "done");
}

INSTANTIATE_TEST_SUITE_P(With, InteropDeath, testing::ValuesIn(sharing_peers()), name_of);

}  // namespace
}  // namespace dlock::interop
