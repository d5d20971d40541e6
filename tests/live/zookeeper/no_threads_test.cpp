// SPDX-License-Identifier: Apache-2.0
//
// A session ends, or a name has to be looked up, while the system gives no thread.
#include <gtest/gtest.h>

#include "testkit/no_threads.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

class ZooKeeperNoThreads : public testing::Test {
 protected:
  ZooKeeperServer& server_ = shared_server();
};

// The old session is closed on a thread of its own; the new one needs none.
TEST_F(ZooKeeperNoThreads, ASessionThatEndsIsMadeAnew) {
  FaultProxy proxy(server_.port());
  auto locks = open_zookeeper(url_of({proxy.port()}, "/app?session_timeout=1500ms"));
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  BareClient client(server_.port(), 10s);
  {
    const NoThreads none;
    proxy.refuse(true);
    proxy.drop_all();
    ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
    ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").empty(); }))
        << "the server has ended the session";
    proxy.refuse(false);
    auto next = locks.lock("job")->acquire({.wait = 30s});
    EXPECT_EQ(next.state(), HandleState::held);
    EXPECT_FALSE(next.release());
  }
  auto again = locks.lock("job")->acquire({.wait = 30s});
  EXPECT_FALSE(again.release());
  locks.close();
}

TEST_F(ZooKeeperNoThreads, ANameIsLookedUpWhenThereAreThreads) {
  const auto port = std::to_string(server_.port());
  OpenOptions options;
  options.backends = {&zookeeper::backend()};
  options.log = [](LogLevel, std::string_view) {};
  auto locks = LockManager::from_config(
      Config::from_yaml("stores:\n"
                        "  number: \"zookeeper://127.0.0.1:" +
                            port +
                            "/app?session_timeout=2s\"\n"
                            "  name: \"zookeeper://localhost:" +
                            port +
                            "/app?session_timeout=2s&connect_timeout=1s\"\n"
                            "locks:\n"
                            "  - { match: \"a/**\", store: number }\n"
                            "  - { match: \"b/**\", store: name }\n",
                        "test.yaml"),
      std::move(options));
  // Now the manager has the threads of its own.
  EXPECT_FALSE(locks.lock("a/job")->acquire().release());
  {
    const NoThreads none;
    error_code ec;
    EXPECT_FALSE(locks.lock("b/job")->acquire({.wait = 3s}, {}, ec));
    EXPECT_EQ(ec, errc::unavailable) << ec.message();
    EXPECT_NE(ec.message().find("RLIMIT_NPROC"), std::string::npos) << ec.message();
  }
  EXPECT_FALSE(locks.lock("b/job")->acquire({.wait = 20s}).release());
}

}  // namespace
}  // namespace dlock::testkit
