// SPDX-License-Identifier: Apache-2.0
//
// The self-test of a server: when it is sent, what it costs, and what a server may deny.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;
using Result = SelfTestReport::Result;

class RedisSelfTest : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    proxy_.emplace(server_.port());
    proxy_->on_data([this](Direction direction, ConnectionId, std::string_view bytes) {
      const bool is_test = bytes.find("%self-test-") != std::string_view::npos;
      if (direction == Direction::to_server && is_test) ++writes_;
      return Verdict::forward;
    });
  }
  LockManager open_behind_proxy(std::string_view rest = {}) {
    return open_redis(redis_url(proxy_->port(), rest));
  }
  LockManager open_as(const std::string& rights, const std::string& rest = {}) {
    redis::Command command{"ACL", "SETUSER", "app", "reset", "on", ">secret", "+@all", "~*", "&*"};
    for (std::size_t at = 0; at < rights.size();) {
      const auto end = std::min(rights.find(' ', at), rights.size());
      command.push_back(rights.substr(at, end - at));
      at = end + 1;
    }
    EXPECT_EQ(client().ask(command).text, "OK");
    return open_redis("redis://app:secret@127.0.0.1:" + std::to_string(server_.port()) +
                      "/0?connect_timeout=5s&release_timeout=2s" + rest);
  }
  static SelfTestReport report_of(LockManager& locks) {
    auto reports = locks.self_test("default");
    EXPECT_EQ(reports.size(), 1U);
    return reports.at(0);
  }
  std::vector<std::string> left() {
    std::vector<std::string> keys;
    for (const auto& key : client().ask({"KEYS", "*self-test*"}).items) keys.push_back(key.text);
    return keys;
  }

  std::optional<FaultProxy> proxy_;
  std::atomic<int> writes_{0};
};

TEST_F(RedisSelfTest, IsOneRoundTripBeforeTheFirstLockAndNoneLater) {
  auto locks = open_behind_proxy();
  locks.connect();
  EXPECT_FALSE(locks.status("a").held);
  EXPECT_TRUE(locks.list().empty());
  EXPECT_EQ(writes_, 0);
  const auto before = proxy_->stats().turns;
  auto held = locks.lock("a")->acquire();
  EXPECT_EQ(writes_, 1);
  EXPECT_EQ(proxy_->stats().turns - before, 2U) << "the self-test, and the lock";
  EXPECT_FALSE(held.release());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(locks.lock("b/" + std::to_string(i))->acquire().release());
  }
  EXPECT_EQ(writes_, 1);
  // The fence has no key of a lock beside it, and expires.
  for (const auto& key : left()) {
    EXPECT_THAT(key, HasSubstr("%fence"));
    EXPECT_LE(client().ask({"PTTL", key}).integer, 10'000);
  }
}

TEST_F(RedisSelfTest, IsTwoRoundTripsWhereTheServerHasForgottenTheScripts) {
  auto locks = open_behind_proxy();
  locks.connect();
  client().ask({"SCRIPT", "FLUSH"});
  const auto before = proxy_->stats().turns;
  auto held = locks.lock("a")->acquire();
  EXPECT_EQ(proxy_->stats().turns - before, 3U);
}

TEST_F(RedisSelfTest, ManyAtOnceShareIt) {
  auto locks = open_behind_proxy();
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_FALSE(locks.lock("a/" + std::to_string(i))->acquire({.wait = 20s}).release());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(writes_, 1);
}

TEST_F(RedisSelfTest, IsRepeatedForAnotherServerOnly) {
  auto locks = open_behind_proxy();
  EXPECT_FALSE(locks.lock("a")->acquire().release());
  proxy_->drop_all();
  EXPECT_FALSE(locks.lock("a")->acquire({.wait = 20s}).release());
  EXPECT_EQ(writes_, 1) << "another connection to the same run of the server";
  client_.reset();
  server_.restart();
  EXPECT_FALSE(locks.lock("a")->acquire({.wait = 20s}).release());
  EXPECT_EQ(writes_, 2);
}

TEST_F(RedisSelfTest, IsPassedBeforePermitsAndReaders) {
  auto locks = open_behind_proxy();
  EXPECT_FALSE(locks.semaphore("s", 1).acquire().release());
  EXPECT_EQ(writes_, 1);
  auto others = open_behind_proxy();
  EXPECT_FALSE(others.lock("r")->acquire({.mode = Mode::shared}).release());
  EXPECT_EQ(writes_, 2);
}

TEST_F(RedisSelfTest, KeepsToTheTemplateAndTheKeysOfTheUser) {
  auto locks = open_as("resetkeys ~app:* ~{app:*", "&key=app:%7Bname%7D");
  EXPECT_FALSE(locks.lock("x")->acquire().release());
  for (const auto& step : report_of(locks).steps) {
    EXPECT_EQ(step.result, Result::passed) << step.name << ": " << step.text;
  }
}

TEST_F(RedisSelfTest, ADeniedStepIsNotTestedAndLocksAreGranted) {
  auto locks = open_as("-del");
  EXPECT_TRUE(locks.lock("x")->acquire());
  const auto steps = report_of(locks).steps;
  EXPECT_EQ(steps.at(3).result, Result::passed);
  EXPECT_EQ(steps.at(4).result, Result::not_tested);
  EXPECT_THAT(steps.at(4).text, HasSubstr("del"));
  // Locks of some names only: the key of the test is not among them.
  auto narrow = open_as("resetkeys ~dlock:{y}* ~dlock:{plans-in}*");
  EXPECT_TRUE(narrow.lock("y")->acquire({.wait = 20s}));
  for (const auto& step : report_of(narrow).steps) EXPECT_EQ(step.result, Result::not_tested);
}

TEST_F(RedisSelfTest, AFullServerIsNotTestedAndNotUnsafe) {
  auto locks = open_behind_proxy("&connect_timeout=1s");
  locks.connect();
  client().ask({"CONFIG", "SET", "maxmemory", "1"});
  error_code error;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 1s}, {}, error));
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_EQ(report_of(locks).steps.at(0).result, Result::not_tested);
  client().ask({"CONFIG", "SET", "maxmemory", "0"});
  const auto before = writes_.load();
  EXPECT_TRUE(locks.lock("x")->acquire({.wait = 20s}));
  EXPECT_EQ(writes_, before + 1) << "tested as soon as it can be";
}

TEST_F(RedisSelfTest, WithoutAnAnswerNothingIsGrantedAndItIsTriedAgain) {
  auto locks = open_behind_proxy("&request_timeout=300ms");
  locks.connect();
  proxy_->hold(Direction::to_client, true);
  error_code error;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 0s}, {}, error));
  EXPECT_EQ(error, errc::unavailable) << error.message();
  proxy_->hold(Direction::to_client, false);
  EXPECT_TRUE(locks.lock("x")->acquire({.wait = 20s}));
}

}  // namespace
}  // namespace dlock::testkit
