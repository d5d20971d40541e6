// SPDX-License-Identifier: Apache-2.0
//
// The server starters themselves, and the ensemble's cuts: other tests build on what these say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

template <typename Kind>
void live_through_everything(Kind& server) {
  server.start();
  EXPECT_TRUE(server.answers());
  const std::uint16_t port = server.port();
  server.kill9();
  EXPECT_FALSE(server.running());
  EXPECT_FALSE(server.answers());
  server.start();
  EXPECT_TRUE(server.answers());
  server.pause();
  EXPECT_FALSE(server.answers());
  server.resume();
  EXPECT_TRUE(eventually(patience(), [&] { return server.answers(); }));
  server.restart();
  EXPECT_TRUE(server.answers());
  EXPECT_EQ(server.port(), port);
  server.stop();
  EXPECT_FALSE(server.answers());
}

TEST(Servers, Redis) {
  RedisServer server({"--maxmemory", "4mb"});
  live_through_everything(server);
  server.start();
  EXPECT_THAT(ask(server.port(), "CONFIG GET maxmemory\r\n", "4194304", patience()),
              HasSubstr("4194304"));
}

TEST(Servers, Memcached) {
  MemcachedServer server({"-m", "16"});
  live_through_everything(server);
}

TEST(Servers, ZooKeeper) {
  ZooKeeperServer server({.tick = 300ms, .min_session_timeout = 1000ms});
  live_through_everything(server);
  server.start();
  EXPECT_EQ(server.mode(), "standalone");
  const std::string config = server.four_letter("conf");
  EXPECT_THAT(config, HasSubstr("tickTime=300"));
  EXPECT_THAT(config, HasSubstr("minSessionTimeout=1000"));
}

TEST(Servers, AServerThatCannotStartSaysWhy) {
  RedisServer server({"--no-such-option", "1"});
  try {
    server.start();
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-option"));
  }
}

class EnsembleTest : public testing::Test {
 protected:
  void SetUp() override { ensemble.start(); }

  ZooKeeperEnsemble ensemble{{.tick = 200ms, .init_limit = 10, .sync_limit = 3}};
};

TEST_F(EnsembleTest, AnIsolatedLeaderStepsDownAndTheOthersElect) {
  const std::size_t old = ensemble.leader().value();
  ensemble.isolate(old);
  const auto next = ensemble.wait_for_leader(patience(), old);
  ASSERT_TRUE(next);
  EXPECT_NE(*next, old);
  EXPECT_TRUE(eventually(patience(), [&] { return ensemble.server(old).mode().empty(); }));
  EXPECT_TRUE(ensemble.server(old).running());
  ensemble.heal();
  EXPECT_TRUE(ensemble.wait_until_whole(patience()));
  EXPECT_EQ(ensemble.leader(), next);
}

TEST_F(EnsembleTest, AnIsolatedFollowerStopsServingAndTheRestGoesOn) {
  const std::size_t leader = ensemble.leader().value();
  const std::size_t lonely = ensemble.followers().at(0);
  ensemble.isolate(lonely);
  EXPECT_TRUE(eventually(patience(), [&] { return ensemble.server(lonely).mode().empty(); }));
  EXPECT_EQ(ensemble.leader(), leader);
  EXPECT_EQ(ensemble.followers().size(), 1u);
  ensemble.heal();
  EXPECT_TRUE(ensemble.wait_until_whole(patience()));
  EXPECT_EQ(ensemble.leader(), leader);
}

// Cut from its leader alone, a follower cannot come back through the third server.
TEST_F(EnsembleTest, AFollowerCutFromItsLeaderStaysOut) {
  const std::size_t leader = ensemble.leader().value();
  const std::size_t lonely = ensemble.followers().at(0);
  ensemble.cut(leader, lonely);
  EXPECT_TRUE(eventually(patience(), [&] { return ensemble.server(lonely).mode().empty(); }));
  EXPECT_EQ(ensemble.leader(), leader);
  ensemble.heal();
  EXPECT_TRUE(ensemble.wait_until_whole(patience()));
}

TEST_F(EnsembleTest, AKilledLeaderIsReplacedAndComesBack) {
  const std::size_t old = ensemble.leader().value();
  ensemble.server(old).kill9();
  ASSERT_TRUE(ensemble.wait_for_leader(patience(), old));
  ensemble.server(old).start();
  EXPECT_TRUE(ensemble.wait_until_whole(patience()));
}

}  // namespace
}  // namespace dlock::testkit
