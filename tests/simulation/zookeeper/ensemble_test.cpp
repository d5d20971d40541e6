// SPDX-License-Identifier: Apache-2.0
//
// The simulated servers themselves: they do what the real ones were seen to do.
#include "tests/simulation/zookeeper/ensemble.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace dlock::simulation::ensemble {
namespace {

using Kind = Operation::Kind;
using Mode = Operation::Mode;

/// A connection without a network: what the server sends is here.
struct Visitor final : Peer {
  void on_session(std::int64_t id, milliseconds granted) override {
    session = id;
    timeout = granted;
  }
  void on_reply(std::uint64_t request, const Outcome& outcome) override {
    replies[request] = outcome;
    order.push_back("reply " + std::to_string(request));
  }
  void on_change(const Change& change) override {
    order.push_back((change.deleted ? "deleted " : "changed ") + change.path);
  }
  void on_closed() override { closed = true; }

  std::int64_t session = -1;
  milliseconds timeout{0};
  std::map<std::uint64_t, Outcome> replies;
  std::vector<std::string> order;
  bool closed = false;
};

class EnsembleTest : public testing::Test {
 protected:
  std::shared_ptr<Visitor> visit(int server, std::int64_t session = 0, std::int64_t seen = 0) {
    auto visitor = std::make_shared<Visitor>();
    servers.connect(server, visitor, session, seconds(3), seen);
    run(milliseconds(500));
    return visitor;
  }
  std::uint64_t send(Visitor& visitor, Operation operation) {
    servers.receive(visitor, ++number, std::move(operation));
    return number;
  }
  Outcome ask(Visitor& visitor, Operation operation) {
    const auto request = send(visitor, std::move(operation));
    run(milliseconds(500));
    return visitor.replies.at(request);
  }
  std::string create(Visitor& visitor, const std::string& path, Mode mode) {
    return ask(visitor, {.kind = Kind::create, .path = path, .mode = mode}).text;
  }
  void run(Duration time) { world.run_until(world.now() + time); }
  int follower() const { return (servers.leader() + 1) % Ensemble::kServers; }

  World world{1};
  Ensemble servers{world, {.sync_limit = 10}};
  std::uint64_t number = 0;
};

TEST_F(EnsembleTest, ASequenceBeginsAgainAfterReapingAndTransactionsDoNot) {
  auto visitor = visit(0);
  create(*visitor, "/lock", Mode::container);
  const auto first = create(*visitor, "/lock/x-", Mode::ephemeral_sequential);
  EXPECT_EQ(first, "/lock/x-0000000000");
  EXPECT_EQ(create(*visitor, "/lock/x-", Mode::ephemeral_sequential), "/lock/x-0000000001");
  const auto born = servers.committed().find(first)->stat.created;
  ask(*visitor, {.kind = Kind::remove, .path = "/lock/x-0000000000"});
  ask(*visitor, {.kind = Kind::remove, .path = "/lock/x-0000000001"});
  for (int i = 0; i < 12; ++i) {
    run(milliseconds(500));
    ask(*visitor, {});
  }
  EXPECT_EQ(servers.committed().find("/lock"), nullptr);
  create(*visitor, "/lock", Mode::container);
  EXPECT_EQ(create(*visitor, "/lock/x-", Mode::ephemeral_sequential), first);
  EXPECT_GT(servers.committed().find(first)->stat.created, born);
}

TEST_F(EnsembleTest, AListingSentWithACreateShowsIt) {
  auto visitor = visit(follower());
  create(*visitor, "/lock", Mode::container);
  send(*visitor, {.kind = Kind::create, .path = "/lock/x-", .mode = Mode::ephemeral_sequential});
  const auto list = send(*visitor, {.kind = Kind::children, .path = "/lock"});
  run(milliseconds(500));
  EXPECT_THAT(visitor->replies.at(list).children, testing::ElementsAre("x-0000000000"));
}

TEST_F(EnsembleTest, AFollowerThatIsCutOffShowsThePastAndAnswersNoSyncAndNoWrite) {
  auto reader = visit(follower());
  auto writer = visit(servers.leader());
  servers.cut(follower(), milliseconds(2400));  // not as long as a session
  create(*writer, "/new", Mode::persistent);
  EXPECT_EQ(ask(*reader, {.kind = Kind::exists, .path = "/new"}).code, Code::no_node);
  const auto sync = send(*reader, {.kind = Kind::sync, .path = "/"});
  const auto read = send(*reader, {.kind = Kind::exists, .path = "/new"});
  run(seconds(1));
  ASSERT_FALSE(reader->closed);
  EXPECT_FALSE(reader->replies.contains(sync));
  EXPECT_FALSE(reader->replies.contains(read)) << "it waits for the sync before it";
  run(seconds(1));
  EXPECT_EQ(reader->replies.at(read).code, Code::ok) << "mended, it catches up";
}

TEST_F(EnsembleTest, ADeposedLeaderAnswersSyncAndNoWriteUntilItNotices) {
  const int old = servers.leader();
  auto visitor = visit(old);
  servers.cut(old, seconds(60));
  servers.leave_leader(old);
  for (int i = 0; i < 3; ++i) {
    run(seconds(1));
    send(*visitor, {});
  }
  EXPECT_NE(servers.leader(), old);
  EXPECT_TRUE(servers.is_leading(old));
  EXPECT_EQ(ask(*visitor, {.kind = Kind::sync, .path = "/"}).code, Code::ok);
  const auto proof = send(*visitor, {.kind = Kind::check, .path = "/"});
  run(seconds(12));
  EXPECT_FALSE(visitor->replies.contains(proof));
  EXPECT_TRUE(visitor->closed);
  EXPECT_FALSE(servers.is_leading(old));
}

TEST_F(EnsembleTest, AWatcherHearsOfAChangeBeforeAReplyThatShowsIt) {
  auto watcher = visit(0);
  auto writer = visit(0);
  create(*writer, "/node", Mode::persistent);
  ask(*watcher, {.kind = Kind::get_and_watch, .path = "/node"});
  watcher->order.clear();
  send(*writer, {.kind = Kind::remove, .path = "/node"});
  for (int i = 0; i < 100; ++i) {
    send(*watcher, {.kind = Kind::exists, .path = "/node"});
    run(microseconds(50));
  }
  bool told = false;
  for (const auto& line : watcher->order) {
    if (line == "deleted /node") told = true;
    if (!line.starts_with("reply ")) continue;
    const auto& outcome = watcher->replies.at(std::stoull(line.substr(6)));
    EXPECT_EQ(outcome.code == Code::no_node, told);
  }
  EXPECT_TRUE(told);
}

TEST_F(EnsembleTest, ASessionEndsAfterItsTimeAsItsLeaderHeardIt) {
  auto visitor = visit(follower());
  create(*visitor, "/lock", Mode::container);
  create(*visitor, "/lock/x-", Mode::ephemeral_sequential);
  const auto silent_since = world.now();
  TimePoint gone{};
  while (gone == TimePoint{} && world.now() < silent_since + seconds(10)) {
    run(milliseconds(10));
    if (servers.committed().children("/lock").empty()) gone = world.now();
  }
  EXPECT_GT(gone - silent_since, seconds(2));
  EXPECT_LT(gone - silent_since, seconds(3) + 2 * servers.settings().tick);
  EXPECT_TRUE(visitor->closed);
  EXPECT_EQ(visit(follower(), visitor->session)->session, 0);
}

TEST_F(EnsembleTest, AFollowerTellsItsLeaderWithTheNextPingOnly) {
  auto visitor = visit(follower());
  create(*visitor, "/lock", Mode::container);
  create(*visitor, "/lock/x-", Mode::ephemeral_sequential);
  run(milliseconds(1900));
  servers.cut_after_write(visitor->session, seconds(60));
  const auto written = world.now();
  send(*visitor, {.kind = Kind::check, .path = "/"});
  run(milliseconds(100));
  while (!servers.committed().children("/lock").empty()) run(milliseconds(10));
  EXPECT_LT(world.now() - written, seconds(3)) << "the write alone kept the session alive";
}

TEST_F(EnsembleTest, AServerRefusesAClientThatHasSeenMore) {
  auto writer = visit(servers.leader());
  const int behind = follower();
  servers.cut(behind, seconds(5));
  const auto made = ask(*writer, {.kind = Kind::create, .path = "/new"});
  EXPECT_TRUE(visit(behind, writer->session, made.zxid)->closed);
}

TEST_F(EnsembleTest, AnElectionKeepsWhatWasAgreedOn) {
  auto visitor = visit(follower());
  create(*visitor, "/kept", Mode::persistent);
  const int old = servers.leader();
  servers.kill(old, seconds(2));
  run(seconds(10));
  EXPECT_TRUE(servers.is_whole());
  EXPECT_NE(servers.leader(), old);
  for (int id = 0; id < Ensemble::kServers; ++id) {
    EXPECT_NE(servers.tree_of(id).find("/kept"), nullptr) << id;
  }
}

TEST(EnsembleCounter, SticksAtItsEndOneAtATimeAndGoesNegativeInAPipeline) {
  World world(3);
  Ensemble servers(world, {.near_end = 1});
  auto visitor = std::make_shared<Visitor>();
  servers.connect(servers.leader(), visitor, 0, seconds(3), 0);
  world.run_until(world.now() + milliseconds(100));
  std::uint64_t number = 0;
  const auto create = [&](const std::string& path, Mode mode) {
    servers.receive(*visitor, ++number, {.kind = Kind::create, .path = path, .mode = mode});
  };
  create("/lock", Mode::container);
  world.run_until(world.now() + milliseconds(100));
  for (int i = 0; i < 10; ++i) {
    create("/lock/" + std::to_string(i) + "-", Mode::ephemeral_sequential);
    world.run_until(world.now() + milliseconds(50));
  }
  EXPECT_EQ(visitor->replies[number].text, "/lock/9-2147483647");
  for (int i = 0; i < 3; ++i) create("/lock/p-", Mode::ephemeral_sequential);
  world.run_until(world.now() + milliseconds(100));
  EXPECT_EQ(visitor->replies[number].text, "/lock/p--2147483647");
}

}  // namespace
}  // namespace dlock::simulation::ensemble
