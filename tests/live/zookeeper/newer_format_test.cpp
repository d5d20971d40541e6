// SPDX-License-Identifier: Apache-2.0
//
// Records of a newer dlock: each call is refused with both formats, and the record stays as it is.
#include <gmock/gmock.h>

#include <functional>

#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;
using Mode = zookeeper::Client::Mode;

constexpr AcquireOptions kSoon{.wait = 20s};
constexpr auto kHolder = "/x/_c_33333333-0000-4000-8000-000000000000-lock-";
constexpr auto kData = "dlock=2\nwho=other\n";
constexpr auto kNumber = "v=2 17";

class ZooKeeperNewerFormat : public testing::Test {
 protected:
  using Call = std::function<void(LockManager&)>;

  LockManager open() { return open_zookeeper(url_of({server_.port()}, "?session_timeout=2s")); }
  static std::string refusal(const std::string& node) {
    return node + " has format 2; this program reads format 1; upgrade it";
  }
  static void expect_refused(LockManager& locks, const std::string& node, const Call& call) {
    try {
      call(locks);
      ADD_FAILURE() << "not refused";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::newer_format) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(refusal(node)));
    }
  }

  ZooKeeperServer& server_ = shared_server();
  BareClient client_{server_.port()};
};

TEST_F(ZooKeeperNewerFormat, EachCallIsRefusedAndTheRecordStays) {
  auto locks = open();
  EXPECT_FALSE(locks.lock("x")->acquire(kSoon).release());
  const auto holder = client_.create(kHolder, kData);
  const auto token = static_cast<std::uint64_t>(client_.stat(holder).czxid);
  const std::pair<const char*, Call> of_a_holder[] = {
      {"status", [](auto& all) { (void)all.status("x"); }},
      {"mark", [token](auto& all) { all.evict("x", token); }},
      {"ask", [](auto& all) { (void)all.ask("x"); }},
  };
  for (const auto& [what, call] : of_a_holder) {
    SCOPED_TRACE(what);
    expect_refused(locks, holder, call);
  }
  EXPECT_FALSE(locks.lock("x")->try_acquire());
  EXPECT_EQ(client_.stat(holder).version, 0) << "nobody wrote there";
  client_.remove(holder);

  EXPECT_FALSE(locks.semaphore("s", 3).acquire(1, kSoon).release());
  client_.set("/s/%limit", kNumber);
  const auto version = client_.stat("/s/%limit").version;
  expect_refused(locks, "/s/%limit", [](auto& all) { (void)all.semaphore_status("s"); });
  expect_refused(locks, "/s/%limit",
                 [](auto& all) { (void)all.semaphore("s", 3).acquire(1, kSoon); });
  EXPECT_EQ(client_.stat("/s/%limit").version, version);
}

TEST_F(ZooKeeperNewerFormat, NothingIsGrantedUnderAnOffsetThatCannotBeRead) {
  client_.create("/%offset", kNumber, Mode::persistent);
  auto locks = open();
  expect_refused(locks, "/%offset", [](auto& all) { (void)all.lock("x")->acquire(kSoon); });
  expect_refused(locks, "/%offset",
                 [](auto& all) { (void)all.semaphore("s", 3).acquire(1, kSoon); });
  const auto holder = client_.create(kHolder, {});
  expect_refused(locks, "/%offset", [](auto& all) { (void)all.status("x"); });
  expect_refused(locks, "/%offset", [](auto& all) { all.evict("x", 17, {.at_once = true}); });
  EXPECT_TRUE(client_.exists(holder));
}

TEST_F(ZooKeeperNewerFormat, AChangeOfTheHoldersNodeEndsTheHold) {
  auto locks = open();
  auto held = locks.lock("x")->acquire(kSoon);
  const auto node = "/x/" + client_.children("/x").at(0);
  client_.set(node, kData);
  StateLog log(held);
  EXPECT_TRUE(log.wait_for(HandleState::lost));
  EXPECT_EQ(held.loss_reason(), LossReason::broken);
  EXPECT_THAT(held.broken_by(), HasSubstr(refusal(node)));
}

}  // namespace
}  // namespace dlock::testkit
