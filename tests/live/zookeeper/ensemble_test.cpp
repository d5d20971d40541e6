// SPDX-License-Identifier: Apache-2.0
//
// Three servers of which one lags behind or goes: what a client that comes back through it may
// believe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr auto kTick = 500ms;

class ZooKeeperEnsembleFailure : public testing::Test {
 protected:
  void SetUp() override { ensemble_.start(); }
  static std::string url(const std::vector<std::uint16_t>& ports) {
    return url_of(ports, "/app?session_timeout=2s&connect_timeout=30s");
  }
  std::uint16_t port(std::size_t server) { return ensemble_.server(server).port(); }

  ZooKeeperEnsemble ensemble_{{.tick = kTick, .sync_limit = 20}};
};

// The session expires while its client is away; the client comes back through a server that has not
// heard of that, and finds its old node.
TEST_F(ZooKeeperEnsembleFailure, F14_ADyingSessionsNodeIsNotTakenForOnesOwn) {
  const auto leader = ensemble_.leader();
  ASSERT_TRUE(leader.has_value());
  const auto followers = ensemble_.followers();
  ZooKeeperFrames frames;
  FaultProxy proxy(port(followers[0]), frames.filter());
  auto locks = open_zookeeper(url({proxy.port()}));
  auto lock = locks.lock("job");
  auto held = lock->acquire();
  StateLog log;
  log.record(held);
  proxy.refuse(true);
  proxy.drop_all();
  // Nothing from the leader reaches the follower: it still has the node when the others have not.
  ensemble_.cut(followers[0], *leader);
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  auto rival_locks = open_zookeeper(url({port(followers[1])}));
  auto rival = rival_locks.lock("job")->acquire({.wait = 60s});
  frames.clear();
  proxy.refuse(false);
  auto trying = std::async(std::launch::async, [&] {
    error_code ec;
    return lock->try_acquire({.wait = 3s}, {}, ec).has_value();
  });
  EXPECT_FALSE(trying.get());
  EXPECT_EQ(rival.state(), HandleState::held);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(rival.state(), HandleState::held);
  ensemble_.heal();
  rival.release();
  auto again = lock->acquire({.wait = 60s});
  EXPECT_EQ(again.state(), HandleState::held);
}

// A create's reply is lost, and the client comes back through a follower that does not have the
// node yet: it must not conclude that there is none.
TEST_F(ZooKeeperEnsembleFailure, F11_LostCreateReplyThroughALaggingFollower) {
  const auto leader = ensemble_.leader();
  ASSERT_TRUE(leader.has_value());
  const auto followers = ensemble_.followers();
  ZooKeeperFrames frames;
  FaultProxy first(port(followers[1]), frames.filter());
  FaultProxy second(port(followers[0]));
  second.refuse(true);
  // From a create's reply on the first server hangs up on everybody: who has to come back, comes to
  // the second. Until then a client that has lost its link comes back to the first.
  std::atomic<bool> wanted{false};
  std::atomic<bool> struck{false};
  frames.set_rule([&](const Frame& frame) {
    if (wanted && frame.kind == FrameKind::reply && frame.opcode == opcode::create2) struck = true;
    return struck ? Verdict::reset : Verdict::forward;
  });
  // A long session: its node has to be there still when a busy machine is healed.
  auto locks = open_zookeeper(
      url_of({first.port(), second.port()}, "/app?session_timeout=8s&connect_timeout=60s"));
  auto lock = locks.lock("job");
  lock->acquire().release();
  for (int i = 0; i < 3; ++i) {
    // From here the second server answers reads from before the create, and its `sync` waits.
    ensemble_.cut(followers[0], *leader);
    wanted = true;
    auto acquiring = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    ASSERT_TRUE(eventually(patience(), [&] { return struck.load(); }));
    second.refuse(false);
    ASSERT_TRUE(eventually(patience(), [&] { return second.stats().open > 0; }));
    ensemble_.heal();
    auto held = acquiring.get();
    BareClient client(port(*leader));
    client.sync("/app/job");
    EXPECT_THAT(client.children("/app/job"), SizeIs(1));
    EXPECT_FALSE(held.release());
    client.sync("/app/job");
    EXPECT_THAT(client.children("/app/job"), IsEmpty());
    wanted = struck = false;
    second.refuse(true);
    second.drop_all();
    ASSERT_TRUE(ensemble_.wait_until_whole(patience()));
  }
}

// A new client's first look goes to a follower that lags: nobody is let in by an old listing.
TEST_F(ZooKeeperEnsembleFailure, F66_AStaleListingLetsNobodyIn) {
  const auto leader = ensemble_.leader();
  ASSERT_TRUE(leader.has_value());
  const auto followers = ensemble_.followers();
  auto behind = open_zookeeper(url({port(followers[0])}));
  behind.lock("job")->acquire().release();
  auto ahead = open_zookeeper(url({port(followers[1])}));
  ahead.connect();
  for (int i = 0; i < 5; ++i) {
    ensemble_.server(followers[0]).pause();
    auto held = ahead.lock("job")->acquire({.wait = 60s});
    auto trying = std::async(std::launch::async, [&] {
      error_code ec;
      return behind.lock("job")->try_acquire({}, {}, ec).has_value();
    });
    ensemble_.server(followers[0]).resume();
    EXPECT_FALSE(trying.get());
    if (held.state() == HandleState::held) {
      EXPECT_FALSE(held.release());
    }
  }
}

TEST_F(ZooKeeperEnsembleFailure, ASilentServerIsLeftInTimeToKeepTheLock) {
  const auto followers = ensemble_.followers();
  FaultProxy proxy(port(followers[0]));
  // A long session: what is left of it for the other server has to do on a loaded machine, too.
  const auto both =
      url_of({proxy.port(), port(followers[1])}, "/app?session_timeout=8s&connect_timeout=30s");
  auto locks = open_zookeeper(both);
  FaultProxy* silent = nullptr;
  // Which of the two it is connected to is a matter of chance.
  for (int i = 0; i < 20 && silent == nullptr; ++i) {
    locks = open_zookeeper(both);
    locks.connect();
    if (proxy.stats().open > 0) silent = &proxy;
  }
  ASSERT_NE(silent, nullptr);
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  silent->hold(Direction::to_server, true);
  silent->hold(Direction::to_client, true);
  ASSERT_TRUE(log.wait_for(HandleState::suspect, patience()));
  ASSERT_TRUE(eventually(patience(), [&] { return held.state() != HandleState::suspect; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_F(ZooKeeperEnsembleFailure, F16_WaitersGoOnAfterTheLeaderIsReplaced) {
  auto first = open_zookeeper(ensemble_.url() + "app?session_timeout=2s&connect_timeout=60s");
  auto second = open_zookeeper(ensemble_.url() + "app?session_timeout=2s&connect_timeout=60s");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ensemble_.wait_until_whole(patience()));
    const auto leader = ensemble_.leader();
    ASSERT_TRUE(leader.has_value());
    auto held = first.lock("job")->acquire({.wait = 60s});
    auto waiting =
        std::async(std::launch::async, [&] { return second.lock("job")->acquire({.wait = 60s}); });
    ensemble_.server(*leader).kill9();
    held.release();
    auto next = waiting.get();
    EXPECT_EQ(next.state(), HandleState::held);
    next.release();
    ensemble_.server(*leader).start();
  }
}

}  // namespace
}  // namespace dlock::testkit
