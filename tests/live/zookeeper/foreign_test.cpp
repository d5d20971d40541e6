// SPDX-License-Identifier: Apache-2.0
//
// A lock's node in which others have put children of their own, on a real server: who is counted in
// line, and that nothing of theirs is passed, crashes or hangs us.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testkit/servers/zookeeper.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

using Mode = zookeeper::Client::Mode;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kUuid = "01234567-89ab-cdef-0123-456789abcdef";

std::string curator(std::string_view number) { return fmt::format("_c_{}-lock-{}", kUuid, number); }
std::string kazoo(std::string_view number) {
  return fmt::format("0123456789abcdef0123456789abcdef__lock__{}", number);
}

class ZooKeeperForeign : public testing::Test {
 protected:
  void SetUp() override {
    stranger_.emplace(server_.port());
    locks_.emplace(open());
  }
  LockManager open(std::string_view login = "", std::string_view more = "") const {
    return open_zookeeper(fmt::format("zookeeper://{}127.0.0.1:{}/app?session_timeout=5s{}", login,
                                      server_.port(), more));
  }
  /// Makes the lock's node, then a child of it, which so has no number that we would draw.
  std::string put(const std::string& lock, const std::string& child, std::string_view data = {}) {
    locks_->lock(lock)->acquire({.wait = 20s}).release();
    const auto path = "/app/" + lock + "/" + child;
    EXPECT_EQ(stranger_->create(path, data, Mode::persistent), path);
    return path;
  }
  /// The error of an attempt to get the lock while somebody is ahead.
  error_code refused(const std::string& lock) {
    error_code error;
    const auto start = Clock::now();
    const auto handle = locks_->lock(lock)->acquire({.wait = 500ms}, {}, error);
    EXPECT_FALSE(handle) << lock << ": a second holder";
    EXPECT_LT(Clock::now() - start, 15s);
    return error;
  }

  error_code evict(const std::string& lock, std::uint64_t token, bool at_once = true) {
    try {
      locks_->evict(lock, token, {.at_once = at_once});
    } catch (const LockError& error) {
      return error.code();
    }
    return {};
  }

  ZooKeeperServer& server_ = shared_server();
  std::optional<BareClient> stranger_;
  std::optional<LockManager> locks_;
};

TEST_F(ZooKeeperForeign, WhoeverIsAheadIsNotPassed) {
  // For each: nobody gets past it, status tells it, and break takes it away with its token alone.
  const std::vector<std::pair<const char*, std::string>> rows = {
      {"first", curator("0000000000")},
      {"kazoo", kazoo("0000000001")},
      {"curator-32-digits", "_c_0123456789abcdef0123456789abcdef-lock-0000000001"},
      {"reader", fmt::format("_c_{}-__READ__0000000001", kUuid)},
      {"writer", fmt::format("_c_{}-__WRIT__0000000001", kUuid)},
      {"kazoo-reader", "0123456789abcdef0123456789abcdef__rlock__0000000001"},
      {"bare", "lock-0000000001"},
      {"recipe", "x-0123456789abcdef-0000000001"},
      {"seal", fmt::format("{}-lock--0000000000", kUuid)},
      // Older than whoever comes now, whatever the number says.
      {"last-number", curator("2147483647")},
      {"kazoo-last-number", kazoo("2147483647")},
      {"negative", curator("-000000001")},
      {"most-negative", curator("-2147483648")},
      {"long", std::string(4000, 'n') + "-lock-0000000001"},
  };
  for (const auto& [lock, child] : rows) {
    SCOPED_TRACE(lock);
    const auto node = put(lock, child, "no metadata of ours");
    const bool seal = std::string_view(lock) == "seal";
    if (!seal) {
      EXPECT_FALSE(locks_->lock(lock)->try_acquire());
    }
    // What stands in this seal is no record of ours.
    EXPECT_EQ(refused(lock), seal ? errc::protocol : errc::timed_out);
    EXPECT_TRUE(stranger_->exists(node)) << "not ours to delete";
    const auto status = locks_->status(lock);
    EXPECT_EQ(status.held, !seal);
    EXPECT_EQ(status.sealed, seal);
    if (!seal) {
      const auto token = static_cast<std::uint64_t>(stranger_->stat(node).czxid);
      EXPECT_EQ(status.token, token);
      EXPECT_EQ(status.owner.value_or(Owner{}).id, child);
      EXPECT_FALSE(status.notes.empty());
      EXPECT_EQ(evict(lock, token + 1), errc::not_holder);
      EXPECT_TRUE(stranger_->exists(node));
      EXPECT_EQ(evict(lock, token, false), errc::not_supported) << "it would not see a mark";
      EXPECT_TRUE(stranger_->exists(node));
      EXPECT_FALSE(evict(lock, token));
    } else {
      EXPECT_EQ(evict(lock, 1), errc::moving);
      EXPECT_TRUE(stranger_->remove(node));
    }
    EXPECT_FALSE(stranger_->exists(node));
    locks_->lock(lock)->acquire({.wait = 20s}).release();
  }
  EXPECT_EQ(locks_->list().size(), 0U);
}

// A client of another make would wait behind the smaller number as we do: neither passes the other.
TEST_F(ZooKeeperForeign, WhoeverComesAfterAHolderIsInLine) {
  auto held = locks_->lock("held")->acquire({.wait = 20s});
  for (const auto& child : {curator("0000000500"), curator("-2147483648"), kazoo("2147483647")}) {
    ASSERT_FALSE(stranger_->create("/app/held/" + child, {}, Mode::persistent).empty());
  }
  const auto status = locks_->status("held");
  EXPECT_EQ(status.token, held.token());
  ASSERT_EQ(status.waiting.size(), 3U);
  EXPECT_EQ(status.waiting.at(0).id, curator("0000000500"));
  EXPECT_EQ(status.waiting.at(1).id, curator("-2147483648"));
  EXPECT_EQ(status.waiting.at(2).id, kazoo("2147483647"));
  EXPECT_EQ(refused("held"), errc::timed_out);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(locks_->status("held").owner.value_or(Owner{}).id, curator("0000000500"));
  EXPECT_EQ(refused("held"), errc::timed_out);
}

TEST_F(ZooKeeperForeign, WhatNoClientWritesIsNotInLine) {
  for (const auto& child :
       {curator(""), curator("1"), curator("00000000001"), curator("2147483648"),
        curator("9999999999"), curator("99999999999999999999"), curator("-000000000000"),
        curator("+000000001"), curator("-2147483649"), curator("0000000001 "),
        std::string("anything-READ-0000000001"), std::string("anything-WRIT-0000000001"),
        std::string("0000000001"), std::string(4000, 'n')}) {
    put("odd", child, "no metadata of ours");
  }
  auto held = locks_->lock("odd")->acquire({.wait = 20s});
  const auto status = locks_->status("odd");
  EXPECT_EQ(status.token, held.token());
  EXPECT_TRUE(status.waiting.empty());
  const auto all = locks_->list();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "odd");
  EXPECT_FALSE(held.release());
  EXPECT_EQ(stranger_->children("/app/odd").size(), 14U);
}

TEST_F(ZooKeeperForeign, DataOfAnySizeAndKindIsSurvived) {
  const std::string most(1'000'000, 'x');
  put("data", curator("0000000000"), "dlock=1\nid=" + most.substr(20));
  int number = 1;
  for (const std::string& data :
       {most, std::string(), std::string(1000, '\0'), "dlock=1\nhost=" + most.substr(20),
        std::string("dlock=1\npid=99999999999999999999\nsession_timeout_ms=-1\n"),
        std::string("dlock=1\nhost=%zz%0\xff\xfe\n")}) {
    const auto waiter = "/app/data/" + kazoo(fmt::format("{:010}", number++));
    EXPECT_EQ(stranger_->create(waiter, data, Mode::persistent), waiter);
  }
  const auto status = locks_->status("data");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.owner.value_or(Owner{}).id, curator("0000000000")) << "more than is ours";
  EXPECT_EQ(status.waiting.size(), 6U);
  for (const auto& owner : status.waiting) EXPECT_LT(owner.host.size() + owner.id.size(), 65536U);
  EXPECT_EQ(locks_->list().size(), 1U);
  EXPECT_EQ(refused("data"), errc::timed_out);
  EXPECT_FALSE(evict("data", *status.token));
}

TEST_F(ZooKeeperForeign, AHoldersNodeWithChildrenIsNotBroken) {
  const auto node = put("parent", curator("0000000000"));
  ASSERT_FALSE(stranger_->create(node + "/below", {}, Mode::persistent).empty());
  EXPECT_TRUE(evict("parent", *locks_->status("parent").token));
  EXPECT_TRUE(stranger_->exists(node));
  EXPECT_EQ(refused("parent"), errc::timed_out);
}

// Who may not read the holder's data sees the holder all the same.
TEST_F(ZooKeeperForeign, AHolderWhoseDataIsHiddenIsShown) {
  locks_->lock("hidden")->acquire({.wait = 20s}).release();  // everybody may enter
  auto secretive = open("app:pw@", "&acl=creator");
  auto held = secretive.lock("hidden")->acquire({.wait = 20s});
  const auto status = locks_->status("hidden");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, held.token());
  EXPECT_LT(status.held_for.value_or(1h), 10min);
  EXPECT_FALSE(locks_->lock("hidden")->try_acquire());
  EXPECT_EQ(refused("hidden"), errc::access_denied) << "it cannot be waited for";
  EXPECT_FALSE(held.release());
}

TEST_F(ZooKeeperForeign, AListNamesTheNodeThatItMayNotRead) {
  auto held = locks_->lock("seen")->acquire({.wait = 20s});
  auto secretive = open("app:pw@", "&acl=creator");
  auto hidden = secretive.lock("secret")->acquire({.wait = 20s});
  std::vector<LockError> unread;
  const auto all = locks_->list({}, unread);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().name, "seen");
  ASSERT_EQ(unread.size(), 1U);
  EXPECT_EQ(unread.front().code(), errc::access_denied);
  EXPECT_THAT(unread.front().server_text(), testing::HasSubstr("/secret"));
  locks_->list_semaphores({}, unread);
  EXPECT_EQ(unread.size(), 2U);
}

}  // namespace
}  // namespace dlock::testkit
