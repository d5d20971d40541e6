// SPDX-License-Identifier: Apache-2.0
//
// Sessions that servers end, replace, refuse or do not know: one server behind a proxy, or a peer
// that takes connections and answers nothing good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <filesystem>
#include <functional>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

constexpr auto kSession = 2000ms;

/// Sets a node's ACL: everybody, with these permissions.
bool set_permissions(std::uint16_t port, const std::string& path, int permissions) {
  const auto address = "127.0.0.1:" + std::to_string(port);
  auto* handle = zookeeper_init(
      address.c_str(), [](zhandle_t*, int, int, const char*, void*) {}, 5000, nullptr, nullptr, 0);
  if (handle == nullptr) return false;
  std::string scheme = "world";
  std::string id = "anyone";
  ACL entry{permissions, {scheme.data(), id.data()}};
  ACL_vector acl{1, &entry};
  int rc = 1;
  bool sent = false;
  const auto deadline = patience();
  while (rc == 1 && Clock::now() < deadline) {
    if (!sent && zoo_state(handle) == ZOO_CONNECTED_STATE) {
      sent = true;
      zoo_aset_acl(
          handle, path.c_str(), -1, &acl,
          [](int result, const void* into) {
            *static_cast<int*>(const_cast<void*>(into)) = result;
          },
          &rc);
    }
    int descriptor = -1;
    int interest = 0;
    timeval timeout{};
    zookeeper_interest(handle, &descriptor, &interest, &timeout);
    pollfd ready{descriptor, static_cast<short>(interest), 0};
    ready.events = static_cast<short>(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                      ((interest & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0));
    ::poll(&ready, 1, 50);
    const int events = ((ready.revents & POLLIN) != 0 ? ZOOKEEPER_READ : 0) |
                       ((ready.revents & POLLOUT) != 0 ? ZOOKEEPER_WRITE : 0);
    if (events != 0) zookeeper_process(handle, events);
  }
  zookeeper_close(handle);
  return rc == ZOK;
}

class ZooKeeperSession : public testing::Test {
 protected:
  void SetUp() override {
    server_.start();
    proxy_.emplace(server_.port(), frames_.filter());
  }
  static std::string url(std::uint16_t port) {
    return url_of({port}, "/app?session_timeout=2s&connect_timeout=120s");
  }
  LockManager proxied() { return open_zookeeper(url(proxy_->port())); }
  LockManager direct() { return open_zookeeper(url(server_.port())); }
  void wipe() {
    server_.kill9();
    std::filesystem::remove_all(server_.folder() / "data");
    server_.start();
  }

  ZooKeeperServer server_{{.tick = 500ms}};
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> proxy_;
};

// The new server knows no session and no node, and refuses a client that has seen more than it.
TEST_F(ZooKeeperSession, P15_AWipedServerLetsTheRunningProcessInAgain) {
  auto locks = direct();
  // So that its token is above what the server that begins anew will have given for a while.
  for (int i = 0; i < 100; ++i) locks.lock("old")->acquire().release();
  auto held = locks.lock("old")->acquire();
  StateLog log;
  log.record(held);
  wipe();
  const auto back = BoottimeClock::now();
  // Names that this process had no token of before.
  auto next = locks.lock("new")->acquire({.wait = 60s});
  const auto took = BoottimeClock::now() - back;
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_LE(took, kSession + 15s);
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  EXPECT_EQ(held.release(), errc::lock_lost);
  std::printf("in again after %.1f s\n", std::chrono::duration<double>(took).count());
  // And tokens below those that resources have seen stay refused.
  error_code ec;
  EXPECT_FALSE(locks.lock("old")->acquire({.wait = 10s}, {}, ec));
  EXPECT_EQ(ec, errc::token_regressed) << ec.message();
  EXPECT_FALSE(next.release());
  BareClient client(server_.port());
  EXPECT_TRUE(eventually(patience(), [&] { return client.children("/app/new").empty(); }));
}

// Long enough for the local deadline and the session, but the server knows the session still.
TEST_F(ZooKeeperSession, P15_AServerThatWasOnlyAwayKeepsTheSession) {
  auto first = direct();
  auto second = direct();
  auto held = first.lock("job")->acquire();
  auto waiting =
      std::async(std::launch::async, [&] { return second.lock("job")->acquire({.wait = 120s}); });
  BareClient client(server_.port(), 10s);
  ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").size() == 2; }));
  const auto before = client.children("/app/job");
  server_.kill9();
  StateLog log;
  log.record(held);
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  std::this_thread::sleep_for(kSession);  // the outage is the test's subject
  server_.start();
  auto next = waiting.get();
  EXPECT_EQ(next.state(), HandleState::held);
  // The waiter kept its place: its node is one of those from before.
  EXPECT_THAT(before, testing::IsSupersetOf(client.children("/app/job")));
  EXPECT_FALSE(next.release());
}

/// The session's id where a connect response has it: behind length, version and timeout.
constexpr std::size_t kSessionAt = 12;

// A server, or whatever stands before it, that gives out another session on a reconnect.
TEST_F(ZooKeeperSession, F65_AnotherSessionOnAReconnectIsALoss) {
  std::atomic<bool> replace{false};
  FaultProxy liar(server_.port(), [&](Direction direction, ConnectionId, std::string_view bytes) {
    Piece piece{std::string(bytes), Verdict::forward};
    const bool response =
        piece.bytes.size() > kSessionAt + 8 && piece.bytes[3] < 60 &&
        std::string_view(piece.bytes).substr(4, 4) == std::string_view("\0\0\0\0", 4);
    if (direction == Direction::to_client && response && replace.exchange(false)) {
      piece.bytes[kSessionAt + 7] = static_cast<char>(piece.bytes[kSessionAt + 7] ^ 1);
    }
    return std::vector<Piece>{piece};
  });
  auto locks = open_zookeeper(url(liar.port()));
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  replace = true;
  liar.drop_all();
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  EXPECT_FALSE(replace) << "the reconnect came first";
  EXPECT_EQ(log.entries().back().reason, LossReason::session_ended);
  EXPECT_EQ(held.release(), errc::lock_lost);
  auto next = locks.lock("job")->acquire({.wait = 30s});
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_FALSE(next.release());
}

TEST_F(ZooKeeperSession, AReleaseThatTheAclRefusesSaysSo) {
  std::mutex mutex;
  std::string said;
  OpenOptions options;
  options.backends = {&zookeeper::backend()};
  options.log = [&](LogLevel, std::string_view text) {
    const std::lock_guard guard(mutex);
    said.append(text).append("\n");
  };
  auto locks = LockManager::open(url(proxy_->port()), std::move(options));
  auto lock = locks.lock("job");
  auto held = lock->acquire();
  ASSERT_TRUE(set_permissions(server_.port(), "/app/job", ZOO_PERM_ALL & ~ZOO_PERM_DELETE));
  const auto asked = BoottimeClock::now();
  EXPECT_EQ(held.release(), errc::access_denied);
  EXPECT_LE(BoottimeClock::now() - asked, 2s) << "told at once, not when patience ends";
  ASSERT_TRUE(eventually(patience(), [&] {
    const std::lock_guard guard(mutex);
    return said.find("deleting /app/job/_c_") != std::string::npos;
  }));
  // Tried again, but less and less often: until an operator mends it, or for some minutes.
  ASSERT_TRUE(eventually(within(20s), [&] { return frames_.requests(opcode::remove) >= 3; }));
  EXPECT_LE(frames_.requests(opcode::remove), 5U);
  {
    const std::lock_guard guard(mutex);
    EXPECT_EQ(said.find("deleting /app/job/_c_"), said.rfind("deleting /app/job/_c_")) << said;
  }
  // The server lets us delete again: its node goes with our session.
  ASSERT_TRUE(set_permissions(server_.port(), "/app/job", ZOO_PERM_ALL));
  locks.close();
  auto other = direct();
  EXPECT_TRUE(other.lock("job")->acquire({.wait = 30s}));
}

// One process that waits for a lock; the sessions and links that it gets are ended in turn. After a
// few quick tries at the beginning it is one try a second at most, also with each new session.
TEST_F(ZooKeeperSession, P14_NoServerIsTriedMoreThanOnceASecondForLong) {
  auto locks = proxied();
  auto held = locks.lock("job")->acquire();
  // Much more patient than the outage is long: the rate is this test's subject.
  auto waiting = std::async(std::launch::async, [&] {
    error_code ec;
    return locks.lock("job")->acquire({.wait = 300s}, {}, ec);
  });
  const auto tries = [&] { return proxy_->stats().connections; };
  struct Kind {
    const char* name;
    std::function<Verdict(const Frame&)> rule;
  };
  const std::array<Kind, 3> kinds = {{
      {"hung up at the introduction",
       [](const Frame& frame) {
         return frame.kind == FrameKind::connect_request ? Verdict::reset : Verdict::forward;
       }},
      {"hung up instead of the session",
       [](const Frame& frame) {
         return frame.kind == FrameKind::connect_response ? Verdict::reset : Verdict::forward;
       }},
      {"hung up at the first request",
       [](const Frame& frame) {
         return frame.kind == FrameKind::request ? Verdict::reset : Verdict::forward;
       }},
  }};
  constexpr std::uint64_t kSeconds = 7;
  std::uint64_t quick = 7;
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.name);
    frames_.set_rule(kind.rule);
    const auto before = tries();
    proxy_->drop_all();
    std::this_thread::sleep_for(std::chrono::seconds(kSeconds));  // a rate is over a time
    const auto count = tries() - before;
    EXPECT_LE(count, kSeconds + quick);
    EXPECT_GE(count, 2U) << "it goes on trying";
    std::printf("%s: %d tries in %d s\n", kind.name, static_cast<int>(count),
                static_cast<int>(kSeconds));
    quick = 2;  // the first tries of a newcomer and of a new session, which the others make up for
  }
  frames_.set_rule({});
  auto next = waiting.get();
  EXPECT_TRUE(next) << "and gets in when it may";
}

}  // namespace
}  // namespace dlock::testkit
