// SPDX-License-Identifier: Apache-2.0
//
// Other clients are measured as ours, and under the same faults they play their parts; what they do
// fails nobody's run.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <sstream>
#include <string>

#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/sockets.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

TEST(ComparePeers, StandUnderTheSameFaultsAndFailNobodysRun) {
  testkit::TempDir folder;
  const auto run = testkit::run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios",
                "safety.holder_killed,safety.holder_paused", "--stores", "redis,zookeeper",
                "--peers", "kazoo,redis-py", "--out", folder.path().string()}},
      {}, testkit::within(std::chrono::seconds(180)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.err;
  const auto raw = boost::json::parse(testkit::read_file(folder.path() / "raw.json"));
  int seen = 0;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    if (result.at("kind") != "peer") continue;
    ++seen;
    ASSERT_FALSE(result.contains("failed")) << result.at("failed");
    // The first is granted it, and when it is killed or paused, the second.
    EXPECT_GE(result.at("values").at("grants").to_number<int>(), 2) << entry;
    // Paused, it goes on as if it held the lock; nobody could tell it before.
    if (result.at("scenario") == "safety.holder_paused") {
      EXPECT_GT(result.at("values").at("stale_writes").to_number<int>(), 0) << entry;
    }
  }
  EXPECT_EQ(seen, 4 * 3);  // two clients, two faults, three tries
  const auto page = testkit::read_file(folder.path() / "report.md");
  EXPECT_NE(page.find(", with kazoo"), std::string::npos);
  EXPECT_NE(page.find(", with redis-py"), std::string::npos);
}

// A request that is late because the one before it took long counts from when it was due.
TEST(ComparePeers, AreMeasuredByTheClock) {
  testkit::TempDir folder;
  const auto run =
      testkit::run({.argv = {DLOCK_COMMAND, "compare", "--scenarios", "speed.open_load", "--stores",
                             "redis,zookeeper", "--peers", "kazoo,redis-py,curator", "--out",
                             folder.path().string()}},
                   {}, testkit::within(std::chrono::seconds(180)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.err;
  const auto raw = boost::json::parse(testkit::read_file(folder.path() / "raw.json"));
  std::map<std::string, int> seen;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    ASSERT_FALSE(result.contains("failed")) << result.at("failed");
    ++seen[std::string(result.at("driver").as_string())];
    EXPECT_EQ(result.at("acquire").at("count").to_number<int>(), 15) << entry;
    EXPECT_GT(result.at("values").at("acquire_p50_us").to_number<double>(), 0) << entry;
  }
  const std::map<std::string, int> each_slice{
      {"dlock", 60}, {"floor", 60}, {"kazoo", 30}, {"redis-py", 30}, {"curator", 30}};
  EXPECT_EQ(seen, each_slice);
}

// A thousand, each with a lock of its own, which it has once in each slice at least. redis-py's
// clients are threads.
TEST(ComparePeers, TasksStandBesideTheFloor) {
  testkit::TempDir folder;
  const auto run = testkit::run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios", "speed.tasks", "--stores",
                "redis,local", "--peers", "redis-py", "--out", folder.path().string()}},
      {}, testkit::within(std::chrono::seconds(180)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.err;
  const auto raw = boost::json::parse(testkit::read_file(folder.path() / "raw.json"));
  std::map<std::string, int> seen;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    ASSERT_FALSE(result.contains("failed")) << result.at("failed");
    ++seen[std::string(result.at("driver").as_string())];
    const auto pairs = result.at("pair").at("count").to_number<int>();
    EXPECT_GE(pairs, result.at("driver") == "dlock" ? 1000 : 16) << entry;
    EXPECT_GT(result.at("values").at("pairs_per_s").to_number<double>(), 0) << entry;
  }
  const std::map<std::string, int> each_slice{{"dlock", 60}, {"floor", 60}};
  EXPECT_EQ(seen, each_slice);
}

/// Kills one connection of the floor's: its last command is `set` in every other look, dlock's
/// never.
void kill_a_floor(testkit::RedisServer& server, testkit::Process& run) {
  auto wire = testkit::TcpStream::connect(server.port());
  ASSERT_TRUE(wire);
  const auto killed = [&] {
    if (!run.running()) return false;
    wire->send("CLIENT LIST\r\n");
    std::istringstream lines(wire->receive_some());
    std::string line;
    while (std::getline(lines, line)) {
      if (line.find(" cmd=set ") == line.npos || !line.starts_with("id=")) continue;
      wire->send("CLIENT KILL ID " + line.substr(3, line.find(' ') - 3) + "\r\n");
      return wire->receive_some().starts_with(":1");
    }
    return false;
  };
  EXPECT_TRUE(testkit::eventually(testkit::within(std::chrono::seconds(60)), killed));
}

TEST(ComparePeers, AFloorThatFailsBeginsAnewOnce) {
  testkit::TempDir folder;
  testkit::RedisServer server;
  server.start();
  testkit::Process run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios", "speed.uncontended", "--store",
                server.url(), "--out", folder.path().string()}});
  kill_a_floor(server, run);
  const auto status = run.wait(testkit::within(std::chrono::seconds(120)));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 0) << run.collected_stderr();
  const auto raw = boost::json::parse(testkit::read_file(folder.path() / "raw.json"));
  std::map<std::string, int> seen;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    ASSERT_FALSE(result.contains("failed")) << result.at("failed");
    ++seen[std::string(result.at("driver").as_string())];
  }
  const std::map<std::string, int> each_slice{{"dlock", 30}, {"floor", 30}};
  EXPECT_EQ(seen, each_slice);
}

// Readers and permits, where a store has them; redis-py has neither.
TEST(ComparePeers, ShareWhatTheirStoreHas) {
  testkit::TempDir folder;
  const auto run = testkit::run(
      {.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios",
                "speed.read_mostly,speed.permits", "--stores", "zookeeper,redis,memcached",
                "--peers", "kazoo,redis-py,curator", "--out", folder.path().string()}},
      {}, testkit::within(std::chrono::seconds(240)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.err;
  const auto raw = boost::json::parse(testkit::read_file(folder.path() / "raw.json"));
  const auto declares = [&](const boost::json::value& store, const char* kind) {
    for (const auto& one : raw.at("stores").as_array()) {
      if (one.at("id") == store) return one.at("declared").at(kind).as_bool();
    }
    return false;
  };
  std::map<std::string, int> seen;
  double most_readers = 0;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    ASSERT_FALSE(result.contains("failed")) << result.at("failed");
    const bool reads = result.at("scenario") == "speed.read_mostly";
    EXPECT_TRUE(declares(result.at("store"), reads ? "shared_mode" : "permits")) << entry;
    EXPECT_GT(result.at("values").at("grants_per_s").to_number<double>(), 0);
    const auto together = result.at("values").at("together").to_number<double>();
    if (reads) most_readers = std::max(most_readers, together);
    if (result.at("driver") == "dlock") {
      EXPECT_TRUE(result.at("broken").as_array().empty()) << result.at("broken");
      EXPECT_LE(together, reads ? 16 : 4) << entry;
    }
    ++seen[std::string(result.at("driver").as_string()) + (reads ? " reads" : " permits")];
  }
  EXPECT_GT(most_readers, 1);
  EXPECT_EQ(seen.count("kazoo reads"), 0U) << "it would hang";
  EXPECT_EQ(seen["curator reads"], 30);
  EXPECT_EQ(seen["kazoo permits"], 30);
  EXPECT_EQ(seen["curator permits"], 30);
  EXPECT_GE(seen["dlock reads"], 30);
  EXPECT_EQ(seen["dlock permits"], 60);
  EXPECT_EQ(seen.count("redis-py permits"), 0U);
  const auto page = testkit::read_file(folder.path() / "report.md");
  EXPECT_NE(page.find("Many clients on four permits"), std::string::npos);
}

}  // namespace
}  // namespace dlock::compare
