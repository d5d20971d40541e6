// SPDX-License-Identifier: Apache-2.0
//
// A link that ends while no thread can be made: names are looked up, and certificates read, on
// threads of their own. In a program of its own, whose pthread_create() can be made to fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testkit/no_threads.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

class RedisThreads : public RedisTest {
 protected:
  static void SetUpTestSuite() { certificates_ = new Certificates; }
  static void TearDownTestSuite() { delete std::exchange(certificates_, nullptr); }

  /// Its link ends while there is no thread to be had, and comes back when there is.
  static void survives(const std::string& url, std::uint16_t plain_port) {
    auto locks = open_redis(url);
    auto held = locks.lock("x")->acquire();
    RedisClient client(plain_port);
    {
      const NoThreads none;
      client.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::suspect; }));
      const auto end = Clock::now() + 2s;
      EXPECT_FALSE(eventually(end, [&] { return held.state() != HandleState::suspect; }));
    }
    EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::held; }));
    EXPECT_FALSE(held.release());
    EXPECT_EQ(client.ask({"EXISTS", "dlock:{x}"}).integer, 0);
  }

  static Certificates* certificates_;
};
Certificates* RedisThreads::certificates_ = nullptr;

TEST_F(RedisThreads, ALinkToAHostNameComesBack) {
  survives("redis://localhost:" + std::to_string(server_.port()) + "/0", server_.port());
}

TEST_F(RedisThreads, ATlsLinkComesBack) {
  RedisTlsServer tls(*certificates_, "server");
  survives(tls.url("?tls_ca=" + certificates_->file("ca.crt")), tls.server.port());
}

TEST_F(RedisThreads, ATlsLinkToAHostNameComesBack) {
  RedisTlsServer tls(*certificates_, "server");
  survives(tls.url("?tls_ca=" + certificates_->file("ca.crt"), "localhost"), tls.server.port());
}

// A subscription, too.
TEST_F(RedisThreads, WaitersAreWokenAgain) {
  auto locks = open_redis("redis://localhost:" + std::to_string(server_.port()) + "/0?poll=30s");
  auto held = locks.lock("x")->acquire();
  auto waiting = acquire_later(locks.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") == 1; }));
  {
    const NoThreads none;
    client().ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    const auto end = Clock::now() + 1s;
    EXPECT_FALSE(eventually(end, [&] { return client().calls("subscribe") > 1; }));
  }
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("subscribe") > 1; }));
  held.release();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready);
  waiting.get().release();
}

// An address needs no thread to be looked up.
TEST_F(RedisThreads, APlainLinkToAnAddressNeedsNone) {
  auto locks = open();
  auto held = locks.lock("x")->acquire();
  const NoThreads none;
  StateLog log;
  log.record(held);
  client().ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(log.wait_for(HandleState::held));
  EXPECT_FALSE(held.release());
}

TEST_F(RedisThreads, AFirstConnectionSaysWhatIsMissing) {
  auto locks =
      open_redis("redis://localhost:" + std::to_string(server_.port()) + "/0?connect_timeout=5s");
  server_.kill9();
  EXPECT_THROW(locks.connect(), LockError);  // the manager's own threads are there now
  server_.start();
  {
    const NoThreads none;
    try {
      locks.connect();
      FAIL();
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::unavailable) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("RLIMIT_NPROC"));
    }
  }
  EXPECT_NO_THROW(locks.connect());
}

}  // namespace
}  // namespace dlock::testkit
