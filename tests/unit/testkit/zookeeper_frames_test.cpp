// SPDX-License-Identifier: Apache-2.0
#include "testkit/zookeeper_frames.hpp"

#include <gtest/gtest.h>

#include <string>

#include "testkit/fault_proxy.hpp"
#include "testkit/sockets.hpp"

namespace dlock::testkit {
namespace {

std::string number(std::int64_t value, int size) {
  std::string bytes;
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xff);
  }
  return bytes;
}
std::string int32(std::int32_t value) { return number(value, 4); }
std::string int64(std::int64_t value) { return number(value, 8); }
std::string text(const std::string& value) {
  return int32(static_cast<std::int32_t>(value.size())) + value;
}
std::string framed(const std::string& body) { return text(body); }

std::string connect_request() {
  return framed(int32(0) + int64(77) + int32(4000) + int64(0x1234) + text(std::string(16, 'p')));
}
std::string connect_response() {
  return framed(int32(0) + int32(6000) + int64(0x1234) + text(std::string(16, 'p')));
}
std::string request(std::int32_t xid, std::int32_t op, const std::string& body = {}) {
  return framed(int32(xid) + int32(op) + body);
}
std::string reply(std::int32_t xid, std::int64_t zxid, std::int32_t error = 0) {
  return framed(int32(xid) + int64(zxid) + int32(error) + "rest");
}
std::string notification(const std::string& path) {
  return framed(int32(-1) + int64(-1) + int32(0) + int32(2) + int32(3) + text(path));
}

TEST(FrameAssembler, FindsFramesWhereverTheStreamIsCut) {
  const std::string stream = connect_request() + request(1, opcode::create) + framed("");
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameAssembler assembler;
    auto frames = assembler.push(std::string_view(stream).substr(0, cut));
    for (std::string& more : assembler.push(std::string_view(stream).substr(cut))) {
      frames.push_back(std::move(more));
    }
    ASSERT_EQ(frames.size(), 3u) << cut;
    EXPECT_EQ(frames[0], connect_request());
    EXPECT_EQ(frames[1], request(1, opcode::create));
    EXPECT_EQ(frames[2], framed(""));
  }
}

TEST(FrameAssembler, LetsThroughWhatIsNotFramed) {
  FrameAssembler assembler;
  EXPECT_TRUE(assembler.push("ru").empty());
  EXPECT_EQ(assembler.push("ok"), std::vector<std::string>{"ruok"});
  EXPECT_FALSE(assembler.framed());
  EXPECT_EQ(assembler.push("imok"), std::vector<std::string>{"imok"});
}

TEST(FrameDecoder, KnowsConnectRequestsByTheirPlace) {
  FrameDecoder decoder;
  const auto up = decoder.from_client(connect_request());
  ASSERT_TRUE(up);
  EXPECT_EQ(up->kind, FrameKind::connect_request);
  EXPECT_EQ(up->zxid, 77);
  EXPECT_EQ(up->session_timeout, 4000);
  EXPECT_EQ(up->session, 0x1234);
  const auto down = decoder.from_server(connect_response());
  ASSERT_TRUE(down);
  EXPECT_EQ(down->kind, FrameKind::connect_response);
  EXPECT_EQ(down->session_timeout, 6000);
  EXPECT_EQ(down->session, 0x1234);
}

TEST(FrameDecoder, TellsWhichRequestAReplyAnswers) {
  FrameDecoder decoder;
  decoder.from_client(connect_request());
  decoder.from_server(connect_response());
  const auto create = decoder.from_client(request(1, opcode::create2, text("/a/b") + "data"));
  ASSERT_TRUE(create);
  EXPECT_EQ(create->kind, FrameKind::request);
  EXPECT_EQ(create->opcode, opcode::create2);
  EXPECT_EQ(create->path, "/a/b");
  decoder.from_client(request(2, opcode::get_children2, text("/a")));
  decoder.from_client(request(-2, opcode::ping));

  const auto first = decoder.from_server(reply(1, 0x500000001, -110));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, FrameKind::reply);
  EXPECT_EQ(first->opcode, opcode::create2);
  EXPECT_EQ(first->zxid, 0x500000001);
  EXPECT_EQ(first->error, -110);
  EXPECT_EQ(decoder.from_server(reply(-2, 1))->opcode, opcode::ping);
  EXPECT_EQ(decoder.from_server(reply(2, 1))->opcode, opcode::get_children2);
}

TEST(FrameDecoder, ReadsNotifications) {
  FrameDecoder decoder;
  decoder.from_server(connect_response());
  const auto event = decoder.from_server(notification("/lock/x"));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, FrameKind::notification);
  EXPECT_EQ(event->watch_event, 2);
  EXPECT_EQ(event->path, "/lock/x");
}

TEST(FrameDecoder, RefusesFramesThatAreTooShort) {
  FrameDecoder decoder;
  EXPECT_FALSE(decoder.from_client(framed("abc")));
  EXPECT_FALSE(decoder.from_client(framed(int32(1))));
  EXPECT_FALSE(decoder.from_server(framed("")));
  EXPECT_FALSE(decoder.from_server(framed(int32(1) + int64(1))));
}

// A played ZooKeeper: the test says what the server answers.
class ZooKeeperFramesTest : public testing::Test {
 protected:
  void SetUp() override {
    client = TcpStream::connect(proxy.port());
    server = listener.accept();
    ASSERT_TRUE(client && server);
    ask(connect_request());
    answer(connect_response());
  }
  void ask(const std::string& bytes) {
    client->send(bytes);
    ASSERT_EQ(server->receive(bytes.size()), bytes);
  }
  void answer(const std::string& bytes) {
    server->send(bytes);
    ASSERT_EQ(client->receive(bytes.size()), bytes);
  }

  TcpListener listener;
  ZooKeeperFrames frames;
  FaultProxy proxy{listener.port(), frames.filter()};
  std::optional<TcpStream> client, server;
};

TEST_F(ZooKeeperFramesTest, CountsRequestsRepliesAndRoundTrips) {
  ask(request(1, opcode::create2) + request(2, opcode::get_children2));  // sent together
  ask(request(-2, opcode::ping));
  answer(reply(1, 10) + reply(2, 10));
  answer(reply(-2, 10));
  ask(request(3, opcode::remove));
  answer(reply(3, 11) + notification("/x"));
  EXPECT_EQ(frames.connects(), 1u);
  EXPECT_EQ(frames.requests(), 3u);
  EXPECT_EQ(frames.requests(opcode::create2), 1u);
  EXPECT_EQ(frames.requests(opcode::ping), 1u);
  EXPECT_EQ(frames.replies(opcode::remove), 1u);
  EXPECT_EQ(frames.notifications(), 1u);
  EXPECT_EQ(frames.round_trips(), 2u);
  frames.clear();
  EXPECT_EQ(frames.requests(), 0u);
}

TEST_F(ZooKeeperFramesTest, LosesExactlyTheReplyOfACreate) {
  frames.once(FrameKind::reply, opcode::create2, Verdict::reset);
  ask(request(1, opcode::exists));
  answer(reply(1, 1));
  ask(request(2, opcode::create2));
  server->send(reply(2, 2));
  EXPECT_EQ(client->receive(1), "");  // reset, with nothing before it
  EXPECT_TRUE(proxy.connections().empty());
  EXPECT_EQ(frames.pending_once(), 0u);
}

TEST_F(ZooKeeperFramesTest, SwallowsOneFrameOfASegment) {
  frames.once(FrameKind::notification, opcode::none, Verdict::swallow);
  ask(request(1, opcode::exists));
  server->send(notification("/gone") + reply(1, 1));
  EXPECT_EQ(client->receive(reply(1, 1).size()), reply(1, 1));
}

TEST_F(ZooKeeperFramesTest, DeliversAHeldCreateLater) {
  frames.once(FrameKind::request, opcode::create2, Verdict::hold);
  client->send(request(1, opcode::create2));
  EXPECT_TRUE(eventually(patience(), [&] { return frames.pending_once() == 0; }));
  client->reset();
  proxy.release_held();
  EXPECT_EQ(server->receive(request(1, opcode::create2).size()), request(1, opcode::create2));
  EXPECT_EQ(server->wait_for_end(), TcpStream::End::closed);
}

TEST_F(ZooKeeperFramesTest, ARuleSeesEveryFrameWithItsPath) {
  frames.set_rule([](const Frame& frame) {
    const bool hit = frame.kind == FrameKind::request && frame.path == "/secret";
    return hit ? Verdict::swallow : Verdict::forward;
  });
  client->send(request(1, opcode::get_data, text("/secret")) +
               request(2, opcode::get_data, text("/open")));
  const std::string seen = request(2, opcode::get_data, text("/open"));
  EXPECT_EQ(server->receive(seen.size()), seen);
}

}  // namespace
}  // namespace dlock::testkit
