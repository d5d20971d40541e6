// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers on one lock file: whom each of them sees, and who looks for a whole process.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/local/lock/claim.hpp"
#include "backends/local/rules/names.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local::test {
namespace {

class LocalReaders : public testing::Test {
 protected:
  std::string path() const { return (folder_ / "locks").string(); }
  static ClaimPtr reader(Store& store, bool queue = true) {
    return store.make("a", queue, 0, Mode::shared);
  }

  testkit::TempDir folder_{"dlock-readers"};
};

TEST_F(LocalReaders, ComeInBesideEachOtherAndNobodyElseDoes) {
  Store one(path());
  Store other(path());
  ASSERT_FALSE(one.connect().error);
  ASSERT_FALSE(other.connect().error);
  const auto first = reader(one);
  const auto second = reader(other);
  EXPECT_EQ(one.ask(first).status, ClaimStatus::granted);
  EXPECT_EQ(other.ask(second).status, ClaimStatus::granted);
  EXPECT_EQ(other.ask(other.make("a", false)).status, ClaimStatus::busy);
  const auto status = one.status("a");
  ASSERT_EQ(status.readers.size(), 2U);
  EXPECT_EQ(status.readers[0].owner.id, first->request().owner.id);
  EXPECT_EQ(status.readers[1].owner.id, second->request().owner.id) << "each has its record";

  const auto writer = one.make("a");
  EXPECT_EQ(one.ask(writer).status, ClaimStatus::waiting);
  EXPECT_EQ(other.ask(reader(other, false)).status, ClaimStatus::busy) << "behind a writer";
  EXPECT_EQ(one.release(first), ReleaseStatus::released);
  EXPECT_EQ(one.ask(writer).status, ClaimStatus::waiting);
  EXPECT_EQ(other.release(second), ReleaseStatus::released);
  EXPECT_EQ(one.ask(writer).status, ClaimStatus::granted);
  EXPECT_EQ(other.ask(reader(other, false)).status, ClaimStatus::busy);
}

// A dlock without shared mode asks for write locks of everything before it.
TEST_F(LocalReaders, AreHoldersToWhoeverKnowsNoReaders) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto held = reader(store);
  const auto ticket = store.ask(held).token.value();
  LockFile file;
  const auto name = (std::filesystem::path(path()) / file_name("a")).string();
  ASSERT_TRUE(LockFile::open_to_look(AT_FDCWD, name.c_str(), file).ok());
  std::optional<std::uint64_t> found;
  bool shared = false;
  ASSERT_TRUE(file.find_locked(kTicketBase, kEveryTicket, found, shared).ok());
  EXPECT_EQ(found, kTicketBase + ticket);
  EXPECT_TRUE(shared);
  ASSERT_TRUE(file.find_exclusive(kTicketBase, kEveryTicket, found).ok());
  EXPECT_FALSE(found);
}

TEST_F(LocalReaders, OfOneProcessAllLookThatHaveReadersBeforeThemOnly) {
  core::RealEnv env;
  const auto claim = [&](Mode mode) {
    ClaimRequest request;
    request.name = "a";
    request.mode = mode;
    return std::make_shared<LocalClaim>(std::move(request), env);
  };
  const auto first = claim(Mode::shared);
  const auto second = claim(Mode::shared);
  const auto writer = claim(Mode::exclusive);
  const auto last = claim(Mode::shared);
  LocalQueue queue("a.lock");
  queue.join(1, first);
  queue.join(2, second);
  queue.join(5, writer);
  queue.join(6, last);
  EXPECT_TRUE(queue.is_looker(1));
  EXPECT_TRUE(queue.is_looker(2));
  EXPECT_FALSE(queue.is_looker(5));
  EXPECT_FALSE(queue.is_looker(6));
  EXPECT_EQ(queue.next_behind(1, Mode::shared), 2U);
  EXPECT_EQ(queue.next_behind(1, Mode::exclusive), 5U) << "readers elsewhere do not wait for ours";
  EXPECT_TRUE(queue.leave(5)) << "the last one may pass now";
  EXPECT_TRUE(queue.is_looker(6));
  queue.share(1);
  EXPECT_TRUE(queue.leave(1));
  EXPECT_TRUE(queue.leave(2));
  EXPECT_FALSE(queue.leave(6)) << "nobody is left";
}

}  // namespace
}  // namespace dlock::local::test
