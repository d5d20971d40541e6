// SPDX-License-Identifier: Apache-2.0
//
// What the store promises and refuses, by the server's settings and ours.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

using Mode = zookeeper::Client::Mode;
using testing::Contains;
using testing::HasSubstr;

class ZooKeeperSettings : public testing::Test {
 protected:
  LockManager with(std::string_view rest) { return open_zookeeper(url_of({server_.port()}, rest)); }
  std::string refusal(std::string_view rest) {
    try {
      with(rest).connect();
    } catch (const LockError& error) {
      return error.what();
    }
    return {};
  }

  ZooKeeperServer& server_ = shared_server();
};

TEST_F(ZooKeeperSettings, F62_AClippedSessionTimeoutIsRefusedWithTheValueToWrite) {
  // Limits: 1 s and 10 s.
  EXPECT_THAT(refusal("/?session_timeout=600ms"), HasSubstr("session_timeout=1500ms"));
  EXPECT_THAT(refusal("/?session_timeout=1s"), HasSubstr("session_timeout=1500ms"));
  EXPECT_THAT(refusal("/?session_timeout=1499ms"), HasSubstr("session_timeout=1500ms"));
  EXPECT_EQ(refusal("/?session_timeout=1500ms"), "");
  EXPECT_EQ(refusal("/?session_timeout=10s"), "");
  EXPECT_THAT(refusal("/?session_timeout=11s"), HasSubstr("session_timeout=10000ms"));
}

// 4 s and 5 s on ticks of 2 s are what many a starter's block says.
TEST_F(ZooKeeperSettings, F62_AStartersSessionTimeoutIsRaisedWithOneWarning) {
  const auto opened = [&](const std::string& session) {
    const auto yaml = fmt::format("zk-lock:\n  address: 127.0.0.1:{}\n  session-timeout: {}\n",
                                  server_.port(), session);
    std::vector<std::string> warnings;
    OpenOptions options;
    options.backends = {&zookeeper::backend()};
    options.log = [&](LogLevel, std::string_view text) { warnings.emplace_back(text); };
    auto locks = LockManager::from_config(Config::from_yaml(yaml, "application.yml"), options);
    const auto report = locks.inspect().at(0);
    EXPECT_FALSE(report.error) << report.message;
    EXPECT_TRUE(locks.lock("a")->acquire().token().has_value());
    locks.close();
    return std::pair(report.capabilities ? report.capabilities->lease : 0ms, warnings);
  };
  const auto [raised, warnings] = opened("1000");
  EXPECT_EQ(raised, 1500ms);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0],
              HasSubstr("application.yml:3:3: zk-lock: session-timeout: 1000 ms is too "
                        "short for this server"));
  EXPECT_THAT(warnings[0], HasSubstr("used: 1500 ms"));
  const auto [felt, said] = opened("1200");
  EXPECT_EQ(felt, 1500ms) << "above two ticks, below three";
  EXPECT_EQ(said.size(), 1U);
  const auto [good, nothing] = opened("2000");
  EXPECT_EQ(good, 2000ms);
  EXPECT_TRUE(nothing.empty());
}

TEST_F(ZooKeeperSettings, DeclaresWhatItPromises) {
  auto locks = with("/app?session_timeout=2s");
  const auto reports = locks.inspect();
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_TRUE(reports[0].capabilities.has_value()) << reports[0].message;
  const auto& can = *reports[0].capabilities;
  EXPECT_EQ(can.guarantee, Guarantee::exclusive);
  EXPECT_EQ(can.token, TokenStrength::durable);
  EXPECT_EQ(can.lease, 2s);
  EXPECT_TRUE(can.fair && can.can_list && can.can_evict);
  EXPECT_THAT(can.notes, Contains(HasSubstr("version 3.")));
}

TEST_F(ZooKeeperSettings, TheRootIsMadeWhenAbsentAndTheChrootIsNot) {
  (void)with("/some/deep/root?session_timeout=2s").lock("a")->acquire();
  BareClient client(server_.port());
  EXPECT_TRUE(client.exists("/some/deep/root/a"));
  EXPECT_THAT(refusal("/app?session_timeout=2s&chroot=/team"), HasSubstr("chroot"));
  EXPECT_FALSE(client.exists("/team"));
  client.create("/team", {}, Mode::persistent);
  (void)with("/app?session_timeout=2s&chroot=/team").lock("a")->acquire();
  EXPECT_TRUE(client.exists("/team/app/a"));
}

TEST_F(ZooKeeperSettings, ARootThatGoesIsMadeAgain) {
  auto locks = with("/app?session_timeout=2s");
  locks.lock("a")->acquire().release();
  BareClient client(server_.port());
  ASSERT_TRUE(client.remove("/app/a"));
  ASSERT_TRUE(client.remove("/app"));
  auto held = locks.lock("a")->acquire();
  EXPECT_EQ(held.state(), HandleState::held);
}

TEST_F(ZooKeeperSettings, CreatorsNodesAreTheirs) {
  const auto user = "zookeeper://me:secret@127.0.0.1:" + std::to_string(server_.port()) +
                    "/mine?session_timeout=2s&acl=creator";
  auto mine = open_zookeeper(user);
  mine.lock("a")->acquire().release();
  EXPECT_TRUE(mine.lock("a")->try_acquire().has_value());
  try {
    (void)with("/mine?session_timeout=2s").lock("a")->acquire();
    FAIL() << "a stranger got in";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::access_denied) << error.what();
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("secret")));
  }
}

TEST_F(ZooKeeperSettings, ANewPasswordOpensTheNodesThatItOwns) {
  const TempDir folder("dlock-password");
  const auto secret = folder / "password";
  const auto user = [&](const std::string& login, const std::string& rest) {
    return open_zookeeper("zookeeper://" + login + "127.0.0.1:" + std::to_string(server_.port()) +
                          "/app?session_timeout=2s&acl=creator" + rest);
  };
  with("/app?session_timeout=2s").connect();  // makes a root that is open
  write_file(secret, "old\n");
  auto locks = user("", "&auth.username=me&auth.password_file=" + secret.string());
  auto held = locks.lock("old")->acquire();
  user("me:new@", "").lock("new")->acquire().release();
  error_code ec;
  EXPECT_FALSE(locks.lock("new")->try_acquire({}, {}, ec));
  EXPECT_EQ(ec, errc::access_denied) << ec.message();
  write_file(secret, "new\n");
  EXPECT_TRUE(eventually(patience(), [&] {
    return locks.lock("new")->try_acquire({}, {}, ec).has_value();
  })) << ec.message();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_F(ZooKeeperSettings, NothingListensThere) {
  server_.stop();
  const auto started = Clock::now();
  try {
    with("/app?connect_timeout=1s").connect();
    FAIL() << "reached a server that is not there";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::unavailable) << error.what();
  }
  EXPECT_LT(Clock::now() - started, 5s);
}

TEST_F(ZooKeeperSettings, AnUnknownHostIsUnavailableNotAHang) {
  auto locks = open_zookeeper("zookeeper://no-such-host.invalid/app?connect_timeout=3s");
  error_code ec;
  EXPECT_FALSE(locks.lock("a")->try_acquire({.wait = 10s}, {}, ec).has_value());
  EXPECT_EQ(ec, errc::unavailable);
}

TEST_F(ZooKeeperSettings, AHostNameIsReached) {
  const auto port = std::to_string(server_.port());
  open_zookeeper("zookeeper://localhost:" + port + "/app?session_timeout=2s").connect();
}

TEST_F(ZooKeeperSettings, F55_EmptyParentsAreCollected) {
  ZooKeeperServer collecting({.tick = 500ms, .container_check = 500ms});
  collecting.start();
  auto locks = open_zookeeper(url_of({collecting.port()}, "/app?session_timeout=2s"));
  for (int i = 0; i < 50; ++i) locks.lock("once/" + std::to_string(i))->acquire().release();
  BareClient client(collecting.port());
  EXPECT_TRUE(eventually(patience(), [&] { return !client.exists("/app/once"); }));
  EXPECT_EQ(locks.lock("once/1")->acquire().state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::testkit
