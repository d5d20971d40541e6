// SPDX-License-Identifier: Apache-2.0
//
// Who waits is next: to and fro, and all at once. Each holder adds one to a number that nothing but
// the lock protects; at the end none is missing.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropHandOver : public PairTest {};

TEST_P(InteropHandOver, ToAndFro) {
  constexpr int kRounds = 10;
  const Counter counter;
  ForeignClient theirs(their_program());
  std::uint64_t token = 0;
  ASSERT_TRUE(theirs.try_acquire(name));
  for (int i = 0; i < kRounds; ++i) {
    auto ours = acquire_later();
    if (store_->shows_our_waiters()) {
      ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
    }
    ASSERT_EQ(theirs.increment(counter.file()), "done");
    ASSERT_NE(ours.wait_for(0s), std::future_status::ready) << "two holders";
    ASSERT_EQ(theirs.release(), "done");
    auto grant = ours.get();
    ASSERT_GT(grant.handle.token().value(), token);
    token = grant.handle.token().value();
    theirs.begin_acquire(name);
    if (store_->shows_foreign_waiters()) {
      ASSERT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
    }
    counter.increment();
    const auto released = Clock::now();
    ASSERT_FALSE(grant.handle.release());
    const auto granted = theirs.granted();
    ASSERT_TRUE(granted);
    ASSERT_GE(*granted, released) << "two holders";
  }
  EXPECT_EQ(counter.value(), 2 * kRounds);
}

TEST_P(InteropHandOver, NothingIsLostWhenBothWantIt) {
  constexpr int kTimes = 40;
  const Counter counter;
  ForeignClient theirs(their_program());
  theirs.begin_count(name, kTimes, counter.file());
  for (int i = 0; i < kTimes; ++i) {
    auto handle = lock_->acquire({.wait = 60s});
    counter.increment();
    ASSERT_FALSE(handle.release());
  }
  ASSERT_EQ(theirs.answer(), "done");
  EXPECT_EQ(counter.value(), 2 * kTimes);
}

INSTANTIATE_TEST_SUITE_P(With, InteropHandOver, testing::ValuesIn(sharing_peers()), name_of);

}  // namespace
}  // namespace dlock::interop
