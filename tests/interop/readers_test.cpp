// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers of other makes and ours on one lock. Our exclusive ones are writers to them.
#include "tests/interop/support/pair_test.hpp"

namespace dlock::interop {
namespace {

constexpr AcquireOptions kReaderAtOnce{.wait = 0ms, .mode = Mode::shared};
constexpr AcquireOptions kWriterAtOnce{.wait = 0ms};

class InteropReaders : public PairTest {
 protected:
  InteropReaders() : ours_(open(url() + "&exclusive_node=write")), our_lock_(ours_.lock(name)) {}

  testkit::ProcessOptions their_reader() const { return their_program(); }
  testkit::ProcessOptions their_writer() const {
    const bool is_kazoo = &peer() == kazoo_readers().reader;
    return (is_kazoo ? kazoo_readers() : curator_readers()).writer->program(*store_, lease);
  }

  LockManager ours_;
  std::shared_ptr<DistributedLock> our_lock_;
};

TEST_P(InteropReaders, ReadersOfBothHoldItTogether) {
  ForeignClient theirs(their_reader());
  ASSERT_TRUE(theirs.try_acquire(name));
  auto reader = our_lock_->try_acquire(kReaderAtOnce);
  ASSERT_TRUE(reader);
  EXPECT_FALSE(our_lock_->try_acquire(kWriterAtOnce)) << "two holders";
  const auto status = ours_.status(name);
  EXPECT_EQ(status.mode, Mode::shared);
  EXPECT_EQ(status.readers.size(), 2U);
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_TRUE(theirs.try_acquire(name)) << "behind ours";
  EXPECT_EQ(theirs.release(), "done");
  ForeignClient writes(their_writer());
  EXPECT_FALSE(writes.try_acquire(name)) << "two holders";
  EXPECT_FALSE(reader->release());
  EXPECT_TRUE(writes.try_acquire(name));
  EXPECT_EQ(writes.release(), "done");
}

TEST_P(InteropReaders, TheirWriterKeepsUsOut) {
  ForeignClient theirs(their_writer());
  ASSERT_TRUE(theirs.try_acquire(name));
  EXPECT_FALSE(our_lock_->try_acquire(kReaderAtOnce)) << "two holders";
  EXPECT_FALSE(our_lock_->try_acquire(kWriterAtOnce)) << "two holders";
  auto waits = std::async(std::launch::async, [this] {
    return our_lock_->acquire({.wait = 60s, .mode = Mode::shared});
  });
  EXPECT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
  EXPECT_EQ(theirs.release(), "done");
  EXPECT_FALSE(waits.get().release());
}

TEST_P(InteropReaders, OurWriterKeepsThemOutAndLetsTheirReadersInWhenItStepsDown) {
  auto held = our_lock_->acquire();
  ForeignClient reads(their_reader());
  ForeignClient writes(their_writer());
  EXPECT_FALSE(reads.try_acquire(name)) << "two holders";
  EXPECT_FALSE(writes.try_acquire(name)) << "two holders";
  reads.begin_acquire(name);
  EXPECT_TRUE(eventually(patience(), [&] { return waiters() == 1; }));
  EXPECT_FALSE(held.downgrade());
  EXPECT_TRUE(reads.granted());
  EXPECT_FALSE(writes.try_acquire(name)) << "two holders";
  EXPECT_EQ(reads.release(), "done");
  EXPECT_FALSE(writes.try_acquire(name)) << "two holders";
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(writes.try_acquire(name));
  EXPECT_EQ(writes.release(), "done");
}

INSTANTIATE_TEST_SUITE_P(With, InteropReaders,
                         testing::Values(curator_readers().reader, kazoo_readers().reader),
                         name_of);

}  // namespace
}  // namespace dlock::interop
