// SPDX-License-Identifier: Apache-2.0
//
// What tooz does to a lock without looking whose it is.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

class InteropToozBreak : public PairTest {};

TEST_P(InteropToozBreak, TakesOursAndWeAreTold) {
  ForeignClient theirs(their_program());
  ASSERT_TRUE(theirs.try_acquire(name));
  ASSERT_EQ(theirs.release(), "done");
  auto handle = lock_->acquire();
  ASSERT_EQ(theirs.break_lock(), "done");
  ASSERT_TRUE(theirs.try_acquire(name));
  // With the next renewal, a third of the lease at the latest.
  ASSERT_TRUE(eventually(patience(), [&] { return handle.state() == HandleState::lost; }));
  EXPECT_EQ(handle.release(), errc::lock_lost);
  EXPECT_EQ(theirs.release(), "done") << "ours has taken nothing of theirs";
}

INSTANTIATE_TEST_SUITE_P(With, InteropToozBreak, testing::Values(tooz_redis(), tooz_memcached()),
                         name_of);

// Its heartbeat touches the key without a look: a lock of ours then lasts as long as theirs would.
// If that is less, others get it before we know. So its `lock_timeout` must be longer than our
// lease.
class InteropToozHeartbeat : public PairTest {};

TEST_P(InteropToozHeartbeat, ShortensALockThatIsOurs) {
  ForeignClient theirs(their_program(1s));
  ASSERT_TRUE(theirs.try_acquire(name));
  ASSERT_TRUE(theirs.pause());
  auto patient = open(url(60s));
  const auto handle = patient.lock(name)->acquire({.wait = 60s});
  ASSERT_TRUE(theirs.resume());
  const auto before = holder();
  EXPECT_EQ(theirs.extend(), "done") << "it looks whose it is";
  EXPECT_EQ(holder(), before);
  const auto second = acquire_later().get();
  EXPECT_EQ(handle.state(), HandleState::held) << "two holders";
  EXPECT_EQ(theirs.release(), "refused") << "that looks";
}

INSTANTIATE_TEST_SUITE_P(With, InteropToozHeartbeat, testing::Values(tooz_memcached()), name_of);

// The name that tooz is given is a file's, which it locks as a whole: that meets our locks of
// single bytes, if the file is ours and there already.
class InteropToozFile : public PairTest {};

TEST_P(InteropToozFile, OurFileByItsNameIsOurLock) {
  const std::string file = "orders%2F42.lock";
  lock_->acquire().release();
  ForeignClient theirs(their_program());
  ASSERT_TRUE(theirs.try_acquire(file));
  expect_we_do_not_get_it();
  EXPECT_EQ(theirs.release(), "done");
  auto handle = lock_->acquire();
  EXPECT_FALSE(theirs.try_acquire(file)) << "two holders";
  EXPECT_FALSE(handle.release());
  EXPECT_TRUE(theirs.try_acquire(file));
}

INSTANTIATE_TEST_SUITE_P(With, InteropToozFile, testing::Values(tooz_folder()), name_of);

}  // namespace
}  // namespace dlock::interop
