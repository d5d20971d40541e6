// SPDX-License-Identifier: Apache-2.0
//
// An ensemble that was made anew from empty data counts from the beginning: who knows a higher
// token does not take its grants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>

#include "testkit/fault_proxy.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

/// The first words of a server to a client whose session is over: length, version 0, timeout 0,
/// session 0.
bool says_session_over(std::string_view bytes) {
  return bytes.size() >= 20 &&
         std::all_of(bytes.begin() + 4, bytes.begin() + 20, [](char byte) { return byte == 0; });
}

std::string url_at(std::uint16_t port) { return url_of({port}, "/app?session_timeout=2s"); }

void make_anew(ZooKeeperServer& server) {
  server.stop();
  std::filesystem::remove_all(server.folder() / "data");
  server.start();
}

// ZooKeeper itself turns away a session that has seen a later transaction than the server has; so
// the old session has to end first, and the server to be made anew before there is the next one.
TEST(ZooKeeperTokens, F81_OfAServerThatWasMadeAnewAreRefusedByWhoKnowsBetter) {
  ZooKeeperServer server({.tick = 500ms});
  server.start();
  FaultProxy proxy(server.port());
  auto old = open_zookeeper(url_at(proxy.port()));
  std::uint64_t known = 0;
  for (int i = 0; i < 50; ++i) {
    auto held = old.lock("job")->acquire();
    known = *held.token();
    ASSERT_FALSE(held.release());
  }

  auto held = old.lock("session")->acquire();
  proxy.refuse(true);
  proxy.drop_all();
  {
    auto other = open_zookeeper(url_at(server.port()));
    ASSERT_TRUE(other.lock("session")->try_acquire({.wait = 30s})) << "the session has ended";
  }
  std::atomic<ConnectionId> last = std::numeric_limits<ConnectionId>::max();
  proxy.on_data([&last](Direction direction, ConnectionId id, std::string_view bytes) {
    if (id > last) return Verdict::hold;
    if (direction == Direction::to_client && says_session_over(bytes)) last = id;
    return Verdict::forward;
  });
  proxy.refuse(false);
  ASSERT_TRUE(
      eventually(patience(), [&] { return last != std::numeric_limits<ConnectionId>::max(); }));
  make_anew(server);
  proxy.on_data([](Direction, ConnectionId, std::string_view) { return Verdict::forward; });
  proxy.drop_all();

  Diagnostics diagnostics;
  AcquireOptions options;
  options.wait = 60s;
  options.diagnostics = &diagnostics;
  error_code ec;
  const auto refused = old.lock("job")->acquire(options, {}, ec);
  EXPECT_FALSE(refused);
  EXPECT_EQ(ec, errc::token_regressed) << ec.message() << diagnostics.server_text;
  EXPECT_THAT(diagnostics.server_text, HasSubstr("token " + std::to_string(known) + " before"));
  EXPECT_EQ(diagnostics.store, "default");

  // A name that it never held is as good as any, and a process that knows nothing cannot tell.
  EXPECT_FALSE(old.lock("other")->acquire({.wait = 30s}).release());
  auto fresh = open_zookeeper(url_at(server.port()));
  auto again = fresh.lock("job")->acquire({.wait = 30s});
  EXPECT_LT(again.token(), known) << "and the one before was given back";
}

}  // namespace
}  // namespace dlock::testkit
