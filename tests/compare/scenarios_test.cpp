// SPDX-License-Identifier: Apache-2.0
//
// Runs each scenario on a store that supports it, and checks what its clients do, step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <string>
#include <vector>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::object;

/// Runs the command and returns its raw results.
object run_compare(const std::string& scenarios, const std::string& stores) {
  const testkit::TempDir folder;
  const auto run =
      testkit::run({.argv = {DLOCK_COMMAND, "compare", "--quick", "--scenarios", scenarios,
                             "--stores", stores, "--out", folder.path().string()}},
                   {}, testkit::within(std::chrono::minutes(4)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.out << run.err;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_THAT(entry.path().filename(), testing::AnyOf("raw.json", "report.html", "report.md"));
  }
  return boost::json::parse(testkit::read_file(folder / "raw.json")).as_object();
}

/// Returns the events of a try: for each client its own in their order, without the extensions,
/// whose number depends on the time. Faults and heals of the servers have no client.
std::string story(const boost::json::value& events) {
  std::map<std::string, std::string> clients;
  for (const auto& event : events.as_array()) {
    const std::string what(event.at("event").as_string());
    if (what == "extended" || what == "ready") continue;
    auto& text = clients[std::string(event.at("client").as_string())];
    text += " " + what;
    if (what == "told_lost") text += "(" + std::string(event.at("reason").as_string()) + ")";
  }
  std::string all;
  for (const auto& [client, text] : clients) {
    all += (all.empty() ? "" : "; ") + client + ":" + text;
  }
  return all;
}

/// Replaces each `~` by the events of a whole turn of the lock.
std::string spelled(std::string_view text) {
  std::string all;
  for (const char one : text) {
    if (one == '~') {
      all += "wanted granted releasing released";
    } else {
      all += one;
    }
  }
  return all;
}

struct Safety {
  const char* scenario;
  const char* story;  ///< null: it depends on the time
  int grants;
  /// The values beside the counts. `wake_up_ms` is there only without a fault.
  std::vector<const char*> times;
};

void expect_tries(const object& raw, const char* store, const std::vector<Safety>& expected) {
  std::map<std::string, int> tries;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    const std::string id(result.at("scenario").as_string());
    SCOPED_TRACE(id);
    ASSERT_FALSE(result.contains("failed")) << entry;
    EXPECT_EQ(result.at("store"), store);
    tries[id] += 1 << result.at("repeat").to_number<int>();  // in any order
    EXPECT_EQ(result.at("missed"), boost::json::array());
    EXPECT_EQ(result.at("tokens_fell"), boost::json::array());
    EXPECT_EQ(result.at("telling"), boost::json::array());
    const auto known = std::find_if(expected.begin(), expected.end(),
                                    [&](const Safety& one) { return id == one.scenario; });
    ASSERT_NE(known, expected.end()) << story(result.at("events"));
    const auto& values = result.at("values").as_object();
    EXPECT_EQ(values.at("grants"), known->grants);
    if (known->story == nullptr) continue;
    EXPECT_EQ(story(result.at("events")), spelled(known->story));
    for (const char* time : {"told_ms", "granted_ms", "progress_ms", "wake_up_ms"}) {
      const bool wanted = std::find(known->times.begin(), known->times.end(),
                                    std::string_view(time)) != known->times.end();
      EXPECT_EQ(values.contains(time), wanted) << time << " " << values;
    }
  }
  EXPECT_EQ(tries.size(), expected.size());
  for (const auto& [id, repeats] : tries) EXPECT_EQ(repeats, 1 + 2 + 4) << id;
}

TEST(CompareScenarios, OnFiles) {
  const auto raw = run_compare("safety", "local");
  expect_tries(raw, "local",
               {{"safety.holder_killed", "A: wanted granted fault died; B: ~", 2, {"granted_ms"}},
                {"safety.holder_stopped",
                 ": healed; A: wanted granted fault releasing released; B: ~",
                 2,
                 {"granted_ms", "progress_ms"}},
                {"safety.order", "A: ~; B: ~; C: ~; D: ~", 4, {"wake_up_ms"}},
                {"safety.wake_up", "A: ~; B: ~", 2, {"wake_up_ms"}}});
}

TEST(CompareScenarios, OnRedis) {
  const auto raw = run_compare(
      "safety.clock_step,safety.eviction,safety.flush,safety.holder,safety.order,"
      "safety.reply_lost,safety.waiter_partitioned,safety.wake_up",
      "redis");
  expect_tries(raw, "redis",
               {{"safety.clock_step",
                 ": fault; A: wanted granted told_lost(removed); B: ~",
                 2,
                 {"told_ms", "granted_ms"}},
                {"safety.eviction", nullptr, 2, {}},
                {"safety.flush",
                 ": fault; A: wanted granted told_lost(removed); B: ~",
                 2,
                 {"told_ms", "granted_ms"}},
                {"safety.holder_killed", "A: wanted granted fault died; B: ~", 2, {"granted_ms"}},
                {"safety.holder_partitioned",
                 ": healed; A: wanted granted fault told_lost(expired); B: ~",
                 2,
                 {"told_ms", "granted_ms"}},
                {"safety.holder_paused",
                 ": healed; A: wanted granted fault told_lost(expired); B: ~",
                 2,
                 {"told_ms", "granted_ms"}},
                {"safety.order", "A: ~; B: ~; C: ~; D: ~", 4, {"wake_up_ms"}},
                {"safety.reply_lost", ": fault; A: ~; B: ~", 2, {"granted_ms"}},
                {"safety.waiter_partitioned",
                 ": healed; A: ~; B: wanted fault granted releasing released; C: ~",
                 3,
                 {"granted_ms", "progress_ms"}},
                {"safety.wake_up", "A: ~; B: ~", 2, {"wake_up_ms"}}});
  std::map<std::string, std::string> broken;
  for (const auto& result : raw.at("results").as_array()) {
    const std::string id(result.at("scenario").as_string());
    broken[id] = boost::json::serialize(result.at("broken_assumptions"));
    const auto& values = result.at("values").as_object();
    EXPECT_EQ(values.at("stale_writes_fenced"), 0) << id;
    if (id == "safety.eviction") continue;
    EXPECT_EQ(values.at("passed_over"), 0) << id;
    // After a flush or a step of the clock two may hold the lock.
    if (broken[id] == "[]") {
      EXPECT_EQ(values.at("double_grants"), 0) << id;
    }
    const auto time = [&](const char* name) {
      return values.contains(name) ? values.at(name).to_number<double>() : 1;
    };
    for (const char* name : {"told_ms", "granted_ms", "progress_ms", "wake_up_ms"}) {
      EXPECT_GT(time(name), 0) << id;
      EXPECT_LT(time(name), 12'000) << id;
    }
    if (id == "safety.holder_killed") {
      EXPECT_GT(time("granted_ms"), 500) << "a lease is 2 s";
    }
  }
  EXPECT_EQ(broken["safety.clock_step"], R"(["server_clock_not_stepped"])");
  EXPECT_EQ(broken["safety.flush"], R"(["keys_not_removed"])");
  EXPECT_EQ(broken["safety.order"], "[]");
}

TEST(CompareScenarios, OnADurableRedisThatRestarts) {
  expect_tries(run_compare("safety.server_restarted", "redis-durable"), "redis-durable",
               {{"safety.server_restarted",
                 ": fault healed; A: ~; B: ~",
                 2,
                 {"granted_ms", "progress_ms"}}});
}

/// Whether replication was fast enough is not known: the holder keeps the lock or is notified.
TEST(CompareScenarios, OnTheReplicaOfRedis) {
  const auto raw = run_compare("safety.failover", "redis-sentinel");
  EXPECT_EQ(raw.at("results").as_array().size(), 3U);
  for (const auto& result : raw.at("results").as_array()) {
    EXPECT_THAT(story(result.at("events")),
                testing::AllOf(testing::StartsWith(": fault fault; A: wanted granted "),
                               testing::EndsWith(spelled("; B: ~"))));
    EXPECT_EQ(result.at("values").at("grants"), 2);
    EXPECT_EQ(result.at("missed"), boost::json::array());
  }
}

/// A holder whose server is gone for long may lose its session, or reach another server in time.
TEST(CompareScenarios, OnAnEnsemble) {
  const auto raw = run_compare("safety.leader", "zookeeper3");
  std::map<std::string, int> tries;
  for (const auto& result : raw.at("results").as_array()) {
    EXPECT_THAT(story(result.at("events")),
                testing::AllOf(testing::StartsWith(": fault healed; A: wanted granted "),
                               testing::EndsWith(spelled("; B: ~"))));
    EXPECT_EQ(result.at("values").at("grants"), 2);
    EXPECT_EQ(result.at("missed"), boost::json::array());
    ++tries[std::string(result.at("scenario").as_string())];
  }
  EXPECT_EQ(tries["safety.leader_killed"], 3);
  EXPECT_EQ(tries["safety.leader_cut"], 3);
}

/// A flushed server grants the lock again before its holder is notified of the loss.
TEST(CompareScenarios, OnAMemcachedThatForgets) {
  const auto raw = run_compare("safety.flush,safety.eviction", "memcached");
  expect_tries(raw, "memcached",
               {{"safety.flush",
                 ": fault; A: wanted granted told_lost(taken); B: ~",
                 2,
                 {"told_ms", "granted_ms"}},
                {"safety.eviction", nullptr, 2, {}}});
  for (const auto& result : raw.at("results").as_array()) {
    const auto& values = result.at("values");
    if (result.at("scenario") == "safety.flush") {
      EXPECT_EQ(values.at("double_grants"), 1);
      EXPECT_GT(values.at("overlap_ms").to_number<double>(), 0);
      EXPECT_GT(values.at("stale_writes").to_number<int>(), 1);
    }
    EXPECT_EQ(values.at("stale_writes_fenced"), 0);
    EXPECT_EQ(boost::json::serialize(result.at("broken_assumptions")),
              R"(["server_keeps_its_items"])");
    EXPECT_EQ(result.at("contradictions"), boost::json::array());
  }
}

// -- Pitfalls and speed
// ------------------------------------------------------------------------------

struct Pitfall {
  const char* scenario;
  const char* naive;  ///< the story of the usual way
  const char* ours;
};

constexpr Pitfall kPitfalls[] = {
    {"pitfalls.setnx_expire", "A: wanted between fault died; B: wanted",
     ": fault; A: wanted fault died; B: wanted granted"},
    {"pitfalls.blind_delete",
     ": healed; A: wanted granted fault releasing released; B: wanted granted; C: wanted granted",
     ": healed; A: wanted granted fault told_lost(expired) late_release; B: wanted granted; C: "
     "wanted"},
    {"pitfalls.no_renewal", "A: wanted granted; B: wanted granted", "A: wanted granted; B: wanted"},
    {"pitfalls.foreign_unlock", "A: wanted granted foreign_release; B: wanted granted",
     "A: wanted granted foreign_release; B: wanted"},
    {"pitfalls.sequence_token", "A: ~; B: ~", "A: ~; B: ~"},
    {"pitfalls.evicted", ": fault; A: wanted granted; B: wanted granted",
     ": fault; A: wanted granted; B: wanted"},
};

TEST(CompareScenarios, PitfallsHappenToTheUsualWayOnly) {
  const auto raw = run_compare("pitfalls", "redis,memcached,zookeeper");
  std::map<std::string, int> seen;
  for (const auto& entry : raw.at("results").as_array()) {
    const auto& result = entry.as_object();
    const std::string id(result.at("scenario").as_string());
    SCOPED_TRACE(id);
    ++seen[id + " " + std::string(result.at("store").as_string())];
    ASSERT_FALSE(result.contains("failed")) << entry;
    EXPECT_EQ(result.at("kind"), "pitfall");
    EXPECT_EQ(result.at("contradictions"), boost::json::array());
    if (id == "pitfalls.herd") {
      const auto herd = boost::json::serialize(result.at("herd"));
      EXPECT_THAT(herd, testing::HasSubstr(R"({"waiters":10,"naive":10,"ours":)"));
      EXPECT_THAT(herd, testing::HasSubstr(R"({"waiters":100,"naive":100,"ours":)"));
      for (const auto& row : result.at("herd").as_array()) {
        EXPECT_GE(row.at("ours").to_number<int>(), 1);
      }
      continue;
    }
    const auto known = std::find_if(std::begin(kPitfalls), std::end(kPitfalls),
                                    [&](const Pitfall& one) { return id == one.scenario; });
    ASSERT_NE(known, std::end(kPitfalls));
    EXPECT_EQ(result.at("naive").at("happened"), true);
    EXPECT_EQ(result.at("ours").at("happened"), false);
    EXPECT_EQ(story(result.at("naive").at("events")), spelled(known->naive));
    // An evicted holder of dlock's is notified, if it is evicted at all.
    if (id != "pitfalls.evicted") {
      EXPECT_EQ(story(result.at("ours").at("events")), spelled(known->ours));
    }
    const bool sequence = id == "pitfalls.sequence_token";
    EXPECT_EQ(result.at("naive").at("tokens_fell").as_array().empty(), !sequence);
    const bool missed = id == "pitfalls.setnx_expire";
    EXPECT_EQ(boost::json::serialize(result.at("naive").at("missed")),
              missed ? R"(["client B was to come to 'granted' and did not, 6 s after it was due"])"
                     : "[]");
    for (const auto& event : result.at("naive").at("events").as_array()) {
      if (event.at("event") == "foreign_release") {
        EXPECT_EQ(event.at("refused"), "");
      }
    }
    for (const auto& event : result.at("ours").at("events").as_array()) {
      if (event.at("event") == "foreign_release") {
        EXPECT_NE(event.at("refused"), "");
      }
    }
  }
  const std::map<std::string, int> once{{"pitfalls.setnx_expire redis", 1},
                                        {"pitfalls.blind_delete redis", 1},
                                        {"pitfalls.blind_delete memcached", 1},
                                        {"pitfalls.no_renewal redis", 1},
                                        {"pitfalls.no_renewal memcached", 1},
                                        {"pitfalls.foreign_unlock redis", 1},
                                        {"pitfalls.sequence_token zookeeper", 1},
                                        {"pitfalls.evicted memcached", 1},
                                        {"pitfalls.herd zookeeper", 1}};
  EXPECT_EQ(seen, once);
}

TEST(CompareScenarios, TheCostOfALockIsCounted) {
  const auto raw = run_compare("speed.cost", "redis,memcached,zookeeper");
  // Round trips, and requests at the server: Redis counts the commands of a script, too. The
  // counting itself may be one more.
  const std::map<std::string, std::pair<double, double>> costs{
      {"redis dlock", {2, 6}},     {"redis floor", {2, 4}},     {"memcached dlock", {3, 3}},
      {"memcached floor", {3, 3}}, {"zookeeper dlock", {2, 2}}, {"zookeeper floor", {2, 3}}};
  std::map<std::string, int> seen;
  for (const auto& result : raw.at("results").as_array()) {
    const auto what = std::string(result.at("store").as_string()) + " " +
                      std::string(result.at("driver").as_string());
    SCOPED_TRACE(what);
    EXPECT_EQ(result.at("kind"), "speed");
    EXPECT_EQ(result.at("param"), 100);
    EXPECT_EQ(result.at("repeat"), seen[what]);
    EXPECT_EQ(result.at("round"), seen[what]++);
    const auto value = [&](const char* name) {
      return result.at("values").at(name).to_number<double>();
    };
    EXPECT_NEAR(value("round_trips"), costs.at(what).first, 0.1);
    EXPECT_NEAR(value("operations"), costs.at(what).second, 0.1);
    EXPECT_GT(value("bytes_to_server"), 100);
    EXPECT_LT(value("bytes_to_server"), 1000);
    EXPECT_GT(value("bytes_to_client"), 5);
    EXPECT_LT(value("bytes_to_client"), 400);
  }
  EXPECT_EQ(seen.size(), costs.size());
  for (const auto& [what, count] : seen) EXPECT_EQ(count, 2) << what;
  const auto& stores = raw.at("stores").as_array();
  EXPECT_THAT(stores.at(0).at("version").as_string().c_str(),
              testing::MatchesRegex("Redis [0-9.]+"));
  EXPECT_THAT(stores.at(1).at("version").as_string().c_str(),
              testing::MatchesRegex("memcached [0-9.]+"));
  EXPECT_THAT(stores.at(2).at("version").as_string().c_str(),
              testing::MatchesRegex("ZooKeeper [0-9.]+"));
}

TEST(CompareScenarios, EachSliceIsOneOfThirty) {
  const auto raw = run_compare("speed.uncontended,speed.own_locks,speed.waiters", "local");
  std::map<std::string, int> seen;
  for (const auto& result : raw.at("results").as_array()) {
    const std::string id(result.at("scenario").as_string());
    const auto what = id + " " + std::string(result.at("driver").as_string());
    SCOPED_TRACE(what);
    const int repeat = seen[what]++;
    EXPECT_EQ(result.at("repeat"), repeat);
    const auto& values = result.at("values").as_object();
    const bool crowd = id == "speed.waiters";
    EXPECT_EQ(result.at("round"), crowd ? repeat : repeat / 15);
    EXPECT_EQ(result.at("param"), crowd ? 200 : id == "speed.uncontended" ? 1 : 16);
    for (const auto& one : values) EXPECT_GE(one.value().to_number<double>(), 0) << one.key();
    if (crowd) {
      EXPECT_FALSE(values.contains("server_cpu_percent"));
      const auto threads = values.at("threads").to_number<double>();
      // The floor's waiters are threads; they are counted for a thousand.
      if (result.at("driver") == "floor") {
        EXPECT_NEAR(threads, 1001, 10);
      }
      if (result.at("driver") == "dlock") {
        EXPECT_LT(threads, 60);
      }
      continue;
    }
    EXPECT_GT(values.at("pairs_per_s").to_number<double>(), 10);
    EXPECT_GT(values.at("pair_p50_us").to_number<double>(), 0);
    EXPECT_GE(values.at("pair_p99_us").to_number<double>(),
              values.at("pair_p50_us").to_number<double>());
    EXPECT_GT(result.at("pair").at("count").to_number<int>(), 0);
  }
  const std::map<std::string, int> thirty{
      {"speed.uncontended dlock", 30}, {"speed.uncontended floor", 30},
      {"speed.own_locks dlock", 30},   {"speed.own_locks floor", 30},
      {"speed.waiters dlock", 2},      {"speed.waiters floor", 2}};
  EXPECT_EQ(seen, thirty);
}

}  // namespace
}  // namespace dlock::compare
