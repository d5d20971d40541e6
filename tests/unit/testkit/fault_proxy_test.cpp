// SPDX-License-Identifier: Apache-2.0
#include "testkit/fault_proxy.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testkit/ports.hpp"
#include "testkit/sockets.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using End = TcpStream::End;

// A client and a server with the proxy between them.
class FaultProxyTest : public testing::Test {
 protected:
  struct Pair {
    TcpStream client;
    TcpStream server;
  };

  Pair connect() {
    auto client = TcpStream::connect(proxy.port());
    auto server = listener.accept();
    if (!client || !server) throw std::runtime_error("no way through the proxy");
    return {std::move(*client), std::move(*server)};
  }

  TcpListener listener;
  FaultProxy proxy{listener.port()};
};

TEST_F(FaultProxyTest, ForwardsBothWaysAndCounts) {
  Pair pair = connect();
  for (int turn = 0; turn < 3; ++turn) {
    pair.client.send("question");
    EXPECT_EQ(pair.server.receive(8), "question");
    pair.server.send("answer");
    EXPECT_EQ(pair.client.receive(6), "answer");
  }
  const ProxyStats stats = proxy.stats();
  EXPECT_EQ(stats.to_server.bytes, 24u);
  EXPECT_EQ(stats.to_client.bytes, 18u);
  EXPECT_EQ(stats.to_server.segments, 3u);
  EXPECT_EQ(stats.turns, 3u);
  EXPECT_EQ(stats.connections, 1u);
  EXPECT_EQ(stats.open, 1u);
}

TEST_F(FaultProxyTest, LeadsNewConnectionsElsewhere) {
  Pair before = connect();
  TcpListener other;
  proxy.lead_to(other.port());
  auto client = TcpStream::connect(proxy.port());
  auto server = other.accept();
  ASSERT_TRUE(client && server);
  client->send("there");
  EXPECT_EQ(server->receive(5), "there");
  before.client.send("here");
  EXPECT_EQ(before.server.receive(4), "here");
}

TEST_F(FaultProxyTest, ForwardsManyBytesUnchanged) {
  Pair pair = connect();
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += std::to_string(i);
  std::thread sender([&] { pair.client.send(bytes); });
  EXPECT_EQ(pair.server.receive(bytes.size()), bytes);
  sender.join();
}

TEST_F(FaultProxyTest, PassesCloseOn) {
  Pair pair = connect();
  pair.client.send("last words");
  pair.client.close();
  EXPECT_EQ(pair.server.receive(10), "last words");
  EXPECT_EQ(pair.server.wait_for_end(), End::closed);
  pair.server.close();
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().open == 0; }));
}

TEST_F(FaultProxyTest, ASideThatOnlyStoppedSendingStillReceives) {
  Pair pair = connect();
  pair.client.shutdown_send();
  EXPECT_EQ(pair.server.wait_for_end(), End::closed);
  pair.server.send("late answer");
  EXPECT_EQ(pair.client.receive(11), "late answer");
}

TEST_F(FaultProxyTest, DropAllResetsBothSides) {
  Pair one = connect();
  Pair two = connect();
  proxy.drop_all();
  for (TcpStream* side : {&one.client, &one.server, &two.client, &two.server}) {
    EXPECT_EQ(side->wait_for_end(), End::reset);
  }
  EXPECT_EQ(proxy.stats().open, 0u);
  Pair after = connect();
  after.client.send("x");
  EXPECT_EQ(after.server.receive(1), "x");
}

TEST_F(FaultProxyTest, DropsOneConnectionOfSeveral) {
  Pair one = connect();
  Pair two = connect();
  const std::vector<ConnectionId> connections = proxy.connections();
  ASSERT_EQ(connections.size(), 2u);
  proxy.drop(connections[0]);
  EXPECT_EQ(one.client.wait_for_end(), End::reset);
  two.client.send("x");
  EXPECT_EQ(two.server.receive(1), "x");
}

TEST_F(FaultProxyTest, RefusesConnectionsWhileToldTo) {
  proxy.refuse(true);
  EXPECT_FALSE(TcpStream::connect(proxy.port()));
  proxy.refuse(false);
  Pair pair = connect();
  pair.client.send("x");
  EXPECT_EQ(pair.server.receive(1), "x");
}

// Such as a child that is being started has until it runs its program.
TEST_F(FaultProxyTest, ListensAgainWhenTheLastCopyOfItsSocketIsGone) {
  proxy.refuse(true);
  auto copy = std::make_optional<TcpListener>(proxy.port());
  std::thread child([&copy] {
    std::this_thread::sleep_for(20ms);  // it lives that long
    copy.reset();
  });
  EXPECT_NO_THROW(proxy.refuse(false));
  child.join();
  Pair pair = connect();
  pair.client.send("x");
  EXPECT_EQ(pair.server.receive(1), "x");
}

TEST_F(FaultProxyTest, AServerThatIsNotThereResetsTheClient) {
  const Port nobody;
  FaultProxy to_nobody(nobody.number());
  auto client = TcpStream::connect(to_nobody.port());
  if (client) {  // the reset may even be faster than the connect
    EXPECT_NE(client->wait_for_end(), End::still_open);
  }
}

TEST_F(FaultProxyTest, HeldBytesArriveLateAndComplete) {
  Pair pair = connect();
  proxy.hold(Direction::to_client, true);
  pair.server.send("held");
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().to_client.bytes == 4; }));
  EXPECT_EQ(pair.client.receive_some(within(30ms)), "");
  pair.client.send("the other way is open");
  EXPECT_EQ(pair.server.receive(21), "the other way is open");
  pair.server.send(" back");
  proxy.hold(Direction::to_client, false);
  EXPECT_EQ(pair.client.receive(9), "held back");
}

TEST_F(FaultProxyTest, HoldsOneConnectionOfSeveral) {
  Pair one = connect();
  Pair two = connect();
  const ConnectionId first = proxy.connections().at(0);
  proxy.hold(first, Direction::to_server, true);
  one.client.send("1");
  two.client.send("2");
  EXPECT_EQ(two.server.receive(1), "2");
  EXPECT_EQ(one.server.receive_some(within(20ms)), "");
  proxy.hold(first, Direction::to_server, false);
  EXPECT_EQ(one.server.receive(1), "1");
}

// A request delivered after its client is gone: the connection's end comes behind it.
TEST_F(FaultProxyTest, HeldBytesOutliveTheirClient) {
  Pair pair = connect();
  proxy.hold(Direction::to_server, true);
  pair.client.send("create");
  pair.client.reset();
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().to_server.bytes == 6; }));
  EXPECT_EQ(pair.server.wait_for_end(within(30ms)), End::still_open);
  proxy.hold(Direction::to_server, false);
  EXPECT_EQ(pair.server.receive(6), "create");
  EXPECT_EQ(pair.server.wait_for_end(), End::closed);
}

TEST_F(FaultProxyTest, DropClientsLeavesHeldBytesToTheServer) {
  Pair pair = connect();
  proxy.hold(Direction::to_server, true);
  pair.client.send("create");
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().to_server.bytes == 6; }));
  proxy.drop_clients();
  EXPECT_EQ(pair.client.wait_for_end(), End::reset);
  proxy.hold(Direction::to_server, false);
  EXPECT_EQ(pair.server.receive(6), "create");
  EXPECT_EQ(pair.server.wait_for_end(), End::closed);
  pair.server.close();
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().open == 0; }));
}

TEST_F(FaultProxyTest, SwallowsWithoutATrace) {
  Pair pair = connect();
  proxy.swallow(Direction::to_client, true);
  pair.server.send("lost");
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().to_client.bytes == 4; }));
  proxy.swallow(Direction::to_client, false);
  pair.server.send("seen");
  EXPECT_EQ(pair.client.receive(4), "seen");
}

TEST_F(FaultProxyTest, DuplicatesEachPiece) {
  Pair pair = connect();
  proxy.duplicate(Direction::to_server, true);
  pair.client.send("ab");
  EXPECT_EQ(pair.server.receive(4), "abab");
}

TEST_F(FaultProxyTest, DelaysAndKeepsTheOrder) {
  Pair pair = connect();
  proxy.delay(Direction::to_server, 40ms);
  const auto sent = Clock::now();
  pair.client.send("slow");
  EXPECT_TRUE(eventually(patience(), [&] { return proxy.stats().to_server.bytes == 4; }));
  proxy.delay(Direction::to_server, 0ms);
  pair.client.send("fast");
  EXPECT_EQ(pair.server.receive(8), "slowfast");
  EXPECT_GE(Clock::now() - sent, 40ms);
}

TEST_F(FaultProxyTest, ResetsAfterSoManyBytes) {
  Pair pair = connect();
  proxy.reset_after(Direction::to_server, 5);
  pair.client.send("abc");
  EXPECT_EQ(pair.server.receive(3), "abc");
  pair.client.send("defg");
  EXPECT_EQ(pair.server.receive(4), "de");
  EXPECT_EQ(pair.client.wait_for_end(), End::reset);
  Pair after = connect();  // once only
  after.client.send("abcdefgh");
  EXPECT_EQ(after.server.receive(8), "abcdefgh");
}

TEST_F(FaultProxyTest, AHookJudgesEachSegment) {
  proxy.on_data([](Direction, ConnectionId, std::string_view bytes) {
    if (bytes == "swallow") return Verdict::swallow;
    if (bytes == "hold") return Verdict::hold;
    if (bytes == "reset") return Verdict::reset;
    return Verdict::forward;
  });
  Pair pair = connect();
  const auto say = [&](const std::string& text) {
    const std::uint64_t before = proxy.stats().to_server.bytes;
    pair.client.send(text);
    return eventually(patience(),
                      [&] { return proxy.stats().to_server.bytes == before + text.size(); });
  };
  ASSERT_TRUE(say("one") && say("swallow") && say("hold") && say("two"));
  EXPECT_EQ(pair.server.receive(3), "one");
  EXPECT_EQ(pair.server.receive_some(within(20ms)), "");
  proxy.release_held();
  EXPECT_EQ(pair.server.receive(7), "holdtwo");
  ASSERT_TRUE(say("reset"));
  EXPECT_EQ(pair.client.wait_for_end(), End::reset);
  EXPECT_EQ(pair.server.wait_for_end(), End::reset);
}

TEST_F(FaultProxyTest, AFilterMayRewriteAndCallTheProxy) {
  bool once = true;
  proxy.set_filter([&](Direction, ConnectionId id, std::string_view bytes) {
    if (bytes == "end" && std::exchange(once, false)) {
      proxy.set_filter(nullptr);
      proxy.drop(id);
    }
    return std::vector<Piece>{{std::string("<").append(bytes).append(">")}};
  });
  Pair pair = connect();
  pair.client.send("x");
  EXPECT_EQ(pair.server.receive(3), "<x>");
  pair.client.send("end");
  EXPECT_EQ(pair.client.wait_for_end(), End::reset);
  Pair after = connect();
  after.client.send("x");
  EXPECT_EQ(after.server.receive(1), "x");
}

TEST(FaultProxyLife, EndsWithOpenConnectionsAndHeldBytes) {
  TcpListener listener;
  std::optional<TcpStream> client;
  {
    FaultProxy proxy(listener.port());
    client = TcpStream::connect(proxy.port());
    ASSERT_TRUE(client);
    proxy.hold(Direction::to_server, true);
    proxy.delay(Direction::to_client, 10min);
    client->send("x");
  }
  EXPECT_EQ(client->wait_for_end(), End::reset);
}

}  // namespace
}  // namespace dlock::testkit
