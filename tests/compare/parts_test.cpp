// SPDX-License-Identifier: Apache-2.0
//
// The suite's small parts at their boundaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "compare/drivers/address.hpp"
#include "compare/drivers/histogram.hpp"
#include "compare/report/figures.hpp"
#include "compare/servers/store.hpp"
#include "compare/suite/contention.hpp"
#include "compare/suite/interrupt.hpp"
#include "compare/suite/judge.hpp"
#include "compare/suite/machine.hpp"
#include "compare/suite/measurement.hpp"
#include "compare/suite/peers.hpp"
#include "compare/suite/progress.hpp"
#include "compare/suite/run_folder.hpp"
#include "compare/suite/safety.hpp"
#include "compare/suite/speed.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::array;
using boost::json::object;
using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(CompareNumbers, AreShownWithThreeDigits) {
  struct {
    double value;
    const char* unit;
    const char* text;
  } const rows[] = {
      {0, "µs", "0 µs"},           {2, "µs", "2 µs"},
      {2.5, "µs", "2.50 µs"},      {9.99, "µs", "9.99 µs"},
      {10, "µs", "10.0 µs"},       {99.94, "µs", "99.9 µs"},
      {100, "µs", "100 µs"},       {999.4, "µs", "999 µs"},
      {1000, "µs", "1.00 ms"},     {999'999, "µs", "1000.00 ms"},
      {1'000'000, "µs", "1.00 s"}, {2'345'678, "µs", "2.35 s"},
      {999.4, "ms", "999 ms"},     {1000, "ms", "1.00 s"},
      {999.4, "/s", "999/s"},      {1000, "/s", "1,000/s"},
      {1234.5, "", "1,235"},       {0.5, "", "0.50"},
      {1e6, "B", "1,000,000 B"},   {12.34, "%", "12.3 %"},
  };
  for (const auto& row : rows) EXPECT_EQ(show(row.value, row.unit), row.text) << row.value;
  EXPECT_EQ(show_count(0), "0");
  EXPECT_EQ(show_count(999), "999");
  EXPECT_EQ(show_count(1000), "1,000");
  EXPECT_EQ(show_count(1'234'567), "1,234,567");
}

TEST(CompareHistogram, HasAllItsFiguresAndBuckets) {
  Histogram histogram;
  EXPECT_EQ(histogram.mean_ns(), 0);
  EXPECT_EQ(histogram.percentile_ns(50), 0);
  histogram.add(1000);
  EXPECT_EQ(histogram.mean_ns(), 1000);
  histogram.add(3000, 3);
  EXPECT_EQ(histogram.count(), 4U);
  EXPECT_EQ(histogram.mean_ns(), 2500);
  EXPECT_EQ(boost::json::serialize(histogram.to_json()),
            R"({"count":4,"mean_us":2.5E0,"p50_us":3.002E0,"p90_us":3.002E0,"p99_us":3.002E0,)"
            R"("p999_us":3.002E0,"max_us":3.002E0,"buckets":[[1000,1],[3002,3]]})");
  Histogram sum;
  sum.add(2000);
  sum.add(histogram);
  EXPECT_EQ(sum.count(), 5U);
  EXPECT_EQ(sum.mean_ns(), 2400);
  EXPECT_EQ(sum.percentile_ns(0), 1000);
  EXPECT_EQ(sum.percentile_ns(20), 1000);
  EXPECT_EQ(sum.percentile_ns(20.1), 2001);
  EXPECT_EQ(sum.percentile_ns(40), 2001);
  EXPECT_EQ(sum.percentile_ns(41), 3002);
  EXPECT_EQ(sum.percentile_ns(500), 3002);
  // Exact up to 1023, and half a step off at most from there on.
  for (const std::uint64_t value : {1ULL, 511ULL, 512ULL, 1023ULL}) {
    Histogram one;
    one.add(value);
    EXPECT_EQ(one.percentile_ns(50), static_cast<double>(value));
  }
  for (const auto& [value, kept] : {std::pair{1024, 1025},
                                    {1025, 1025},
                                    {1026, 1027},
                                    {2047, 2047},
                                    {2048, 2050},
                                    {2051, 2050},
                                    {2052, 2054}}) {
    Histogram one;
    one.add(static_cast<std::uint64_t>(value));
    EXPECT_EQ(one.percentile_ns(50), kept) << value;
  }
}

TEST(ComparePairs, HaveTheirRateAndCost) {
  const object result{{"pairs", 200},
                      {"seconds", 0.5},
                      {"cpu_seconds", 0.01},
                      {"pair", object{{"p50_us", 7}, {"p99_us", 9}}},
                      {"acquire", object{{"p50_us", 4}}}};
  EXPECT_EQ(boost::json::serialize(values_of_pairs(result)),
            R"({"pairs_per_s":4E2,"pair_p50_us":7,"pair_p99_us":9,"acquire_p50_us":4,)"
            R"("cpu_us_per_pair":5E1})");
}

// -- Contention
// --------------------------------------------------------------------------------------

object values(const object& judged) { return judged.at("values").as_object(); }
double value(const object& judged, const char* name) {
  return values(judged).at(name).to_number<double>();
}

TEST(CompareContention, CountsHandOversRetakesAndOverlaps) {
  constexpr std::int64_t second = 1'000'000'000;
  // Client 1 twice, client 2 before the release of client 1, client 3 without a pause.
  const auto judged = judge_turns(
      {{1, 0, 0, 100}, {3, 0, 2 * second, 2 * second}, {1, 0, 300, 500}, {2, 0, 400, 2 * second}},
      4);
  EXPECT_EQ(judged.at("turns"), 4);
  EXPECT_EQ(judged.at("overlaps"), 1);
  EXPECT_EQ(judged.at("handover").at("count"), 2);
  EXPECT_EQ(value(judged, "handovers_per_s"), 1);
  EXPECT_EQ(value(judged, "retakes_percent"), 25);
  EXPECT_EQ(value(judged, "handover_p50_us"), 0);
  EXPECT_NEAR(value(judged, "jain"), 16.0 / (4 * 6), 1e-9);
  const auto none = judge_turns({}, 2);
  EXPECT_EQ(boost::json::serialize(none.at("values")),
            R"({"handovers_per_s":0E0,"jain":0E0,"inversions_percent":0E0,"retakes_percent":0E0})");
  EXPECT_EQ(value(judge_turns({{1, 0, 5, 6}}, 1), "jain"), 1);
}

TEST(CompareContention, AClientIsPassedByMoreThanAMillisecond) {
  const auto inversions = [](std::int64_t asked_before) {
    return value(judge_turns({{1, asked_before, 10, 11}, {2, 0, 20, 21}}, 2), "inversions_percent");
  };
  EXPECT_EQ(inversions(1'000'000), 0);
  EXPECT_EQ(inversions(1'000'001), 50);
  // Its own later turn is not another client's.
  EXPECT_EQ(value(judge_turns({{1, 2'000'000, 10, 11}, {1, 0, 20, 21}}, 2), "inversions_percent"),
            0);
}

TEST(CompareContention, EndsWithTheTurnThatIsAClientsLast) {
  const std::vector<Turn> turns{{2, 0, 5, 6}, {1, 0, 1, 2}, {1, 0, 3, 4}, {2, 0, 7, 8}};
  EXPECT_EQ(until_the_first_stopped(turns, 1).size(), 1U);
  EXPECT_EQ(until_the_first_stopped(turns, 2).size(), 2U);
  EXPECT_EQ(until_the_first_stopped(turns, 3).size(), 4U);
}

TEST(CompareSharing, HasItsRateAndWaits) {
  constexpr std::int64_t second = 1'000'000'000;
  const auto judged = judge_sharing({{1, 1000, 2000, 3000, true},
                                     {2, 0, 2 * second + 2000, 3 * second, false},
                                     {3, second + 500, second, second, true}},
                                    0);
  EXPECT_EQ(judged.at("turns"), 3);
  EXPECT_EQ(value(judged, "grants_per_s"), 1.5);
  EXPECT_EQ(value(judged, "together"), 1);
  EXPECT_EQ(judged.at("read").at("count"), 2);
  EXPECT_EQ(judged.at("write").at("count"), 1);
  EXPECT_EQ(judged.at("acquire").at("count"), 3);
  EXPECT_NEAR(judged.at("read").at("max_us").to_number<double>(), 1, 0.01);
  EXPECT_EQ(value(judge_sharing({{1, 0, 1, 2}}, 1), "grants_per_s"), 1);
}

// -- The judge
// ---------------------------------------------------------------------------------------

using checkers::Event;
using checkers::EventKind;

TimePoint at(int milliseconds) { return TimePoint(std::chrono::milliseconds(milliseconds)); }

Event event(int when, EventKind kind, const char* client, checkers::GrantId grant = 0,
            std::optional<std::uint64_t> token = {}, TimePoint until = kNever) {
  return {at(when), kind, "lock", client, grant, Mode::exclusive, token, until};
}

object declared() {
  return {{"guarantee", "exclusive"}, {"fair", true}, {"token", "durable"}, {"wake_up", "push"}};
}

TEST(CompareJudge, CountsFromTheFaultAndFromTheHeal) {
  Outcome outcome;
  outcome.history = {
      event(0, EventKind::wanted, "A"),         event(1, EventKind::granted, "A", 1, 5),
      event(2, EventKind::wanted, "B"),         event(100, EventKind::faulted, "A"),
      event(130, EventKind::told_lost, "A", 1), event(150, EventKind::granted, "B", 2, 6),
      event(160, EventKind::healed, ""),        event(170, EventKind::releasing, "B", 2),
      event(180, EventKind::granted, "C", 3, 7)};
  const auto judged = judge(outcome);
  EXPECT_EQ(value(judged, "told_ms"), 30);
  EXPECT_EQ(value(judged, "granted_ms"), 50);
  EXPECT_EQ(value(judged, "progress_ms"), 20);
  EXPECT_EQ(value(judged, "grants"), 3);
  EXPECT_EQ(value(judged, "double_grants"), 0);
  EXPECT_FALSE(values(judged).contains("wake_up_ms"));
  EXPECT_TRUE(contradictions(outcome, judged, declared()).empty());
  // An event at the moment of the fault counts.
  outcome.history = {event(0, EventKind::faulted, ""), event(0, EventKind::granted, "A", 1, 5)};
  EXPECT_EQ(value(judge(outcome), "granted_ms"), 0);
}

TEST(CompareJudge, APushMayTakeASecond) {
  const auto complaints = [](int woken) {
    Outcome outcome;
    outcome.history = {event(0, EventKind::wanted, "A"), event(0, EventKind::granted, "A", 1, 5),
                       event(1, EventKind::wanted, "B"), event(100, EventKind::releasing, "A", 1),
                       event(100 + woken, EventKind::granted, "B", 2, 6)};
    return contradictions(outcome, judge(outcome), declared());
  };
  EXPECT_THAT(complaints(1000), testing::IsEmpty());
  EXPECT_THAT(complaints(1001),
              ElementsAre("declares that waiters are told, and one waited on for 1001 ms"));
}

TEST(CompareJudge, TheSlowestWakeUpCountsAndAReleaseWithoutWaitersDoesNot) {
  Outcome outcome;
  outcome.history = {
      event(0, EventKind::wanted, "A"),          event(0, EventKind::granted, "A", 1, 5),
      event(10, EventKind::releasing, "A", 1),   event(200, EventKind::wanted, "B"),
      event(205, EventKind::granted, "B", 2, 6), event(206, EventKind::wanted, "C"),
      event(207, EventKind::wanted, "D"),        event(210, EventKind::releasing, "B", 2),
      event(240, EventKind::granted, "C", 3, 7), event(250, EventKind::releasing, "C", 3),
      event(260, EventKind::granted, "D", 4, 8)};
  EXPECT_EQ(value(judge(outcome), "wake_up_ms"), 30);
}

TEST(CompareJudge, ABeliefEndsWithItsDeadlineReleaseLossOrDeath) {
  const auto overlap = [](std::vector<Event> more, TimePoint until = kNever) {
    Outcome outcome;
    outcome.history = {event(0, EventKind::granted, "A", 1, 5, until),
                       event(10, EventKind::granted, "B", 2, 6), event(90, EventKind::healed, "")};
    outcome.history.insert(outcome.history.end(), more.begin(), more.end());
    return value(judge(outcome), "overlap_ms");
  };
  EXPECT_EQ(overlap({}), 80);
  EXPECT_EQ(overlap({}, at(40)), 30);
  EXPECT_EQ(overlap({event(50, EventKind::releasing, "A", 1)}), 40);
  EXPECT_EQ(overlap({event(60, EventKind::told_lost, "A", 1)}), 50);
  EXPECT_EQ(overlap({event(70, EventKind::died, "A")}), 60);
  EXPECT_EQ(overlap({event(70, EventKind::died, "A")}, at(20)), 10);
}

TEST(CompareJudge, AWriteIsStaleOnceAnotherHolderIsGranted) {
  const auto stale = [](std::vector<Arrival> writes) {
    Outcome outcome;
    outcome.history = {event(10, EventKind::granted, "A", 1, 5),
                       event(20, EventKind::releasing, "A", 1),
                       event(30, EventKind::granted, "B", 2, 6)};
    outcome.writes = std::move(writes);
    const auto judged = judge(outcome);
    return std::pair(value(judged, "stale_writes"), value(judged, "stale_writes_fenced"));
  };
  using Counts = std::pair<double, double>;
  EXPECT_EQ(stale({{at(29), 1, 5}}), Counts(0, 0));
  EXPECT_EQ(stale({{at(30), 1, 5}}), Counts(1, 0));
  EXPECT_EQ(stale({{at(31), 2, 6}, {at(32), 1, 5}}), Counts(1, 0));
  EXPECT_EQ(stale({{at(31), 2, 6}, {at(32), 1, 6}}), Counts(1, 1)) << "the same token passes";
  EXPECT_EQ(stale({{at(31), 2, 6}, {at(32), 1, 0}}), Counts(1, 1)) << "without a token all passes";
  EXPECT_EQ(stale({{at(5), 9, 9}, {at(31), 2, 6}, {at(32), 1, 8}}), Counts(1, 0));
}

TEST(CompareJudge, EachContradictionHasItsText) {
  Outcome outcome;
  outcome.history = {
      event(0, EventKind::wanted, "A"),        event(1, EventKind::wanted, "B"),
      event(2, EventKind::granted, "B", 1, 9), event(3, EventKind::granted, "A", 2, 5),
      event(4, EventKind::told_lost, "B", 1),  event(5, EventKind::told_lost, "B", 1)};
  outcome.writes = {{at(4), 2, 9}, {at(5), 1, 9}};
  outcome.missed = {"one waited in vain"};
  const auto judged = judge(outcome);
  EXPECT_THAT(
      contradictions(outcome, judged, declared()),
      ElementsAre("declares exclusive, and granted the lock 1 time(s) while another still believed",
                  testing::StartsWith("declares durable tokens, and they fell: "),
                  "1 stale write(s) passed the check of the token",
                  testing::StartsWith("the holder was told wrongly: "),
                  "declares first come, first served, and passed over 1 client(s)",
                  "one waited in vain"));
  auto little = declared();
  little["guarantee"] = "best_effort";
  little["fair"] = false;
  little["token"] = "none";
  EXPECT_THAT(
      contradictions(outcome, judged, little),
      ElementsAre(testing::StartsWith("the holder was told wrongly: "), "one waited in vain"));
}

// -- Stores and addresses
// ----------------------------------------------------------------------------

TEST(CompareStores, HaveTheFaultsOfTheirFlavour) {
  const auto faults = [](const char* id, const char* flavour = "") {
    std::string all;
    for (const auto& one : make_store(id, Pace::short_leases, flavour)->faults()) {
      all += (all.empty() ? "" : " ") + one;
    }
    return all;
  };
  EXPECT_EQ(faults("local"), "");
  EXPECT_EQ(faults("zookeeper"), "kill_server start_server");
  EXPECT_EQ(faults("zookeeper3"), "kill_leader start_killed cut_leader mend_leader");
  EXPECT_EQ(faults("redis"), "kill_server start_server flush");
  EXPECT_EQ(faults("redis", "evicting"), "kill_server start_server flush evict");
  EXPECT_EQ(faults("redis-durable", "clock"), "kill_server start_server flush step_clock");
  EXPECT_EQ(faults("redis-sentinel"), "lag failover");
  EXPECT_EQ(faults("memcached"), "kill_server start_server flush");
  EXPECT_EQ(faults("memcached", "evicting"), "kill_server start_server flush evict");
}

TEST(CompareStores, RefuseAnUnknownFaultOrName) {
  for (const char* id :
       {"local", "zookeeper", "zookeeper3", "redis", "redis-sentinel", "memcached"}) {
    const auto store = make_store(id, Pace::short_leases);
    for (const char* fault : {"step_clock", "nothing"}) {
      try {
        store->apply(fault);
        ADD_FAILURE() << id << " did " << fault;
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), std::string(id) + " has no fault '" + fault + "'");
      }
    }
  }
  try {
    make_store("postgres", Pace::working);
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "no store 'postgres'; there are: local, zookeeper, zookeeper3, redis, "
                 "redis-durable, redis-sentinel, memcached");
  }
}

TEST(CompareStores, HaveTheLeaseOfTheirPaceInTheirUrl) {
  struct {
    const char* id;
    std::chrono::milliseconds working, quick;
    const char* scheme;
    const char* end;
  } const rows[] = {
      {"zookeeper", 10s, 2s, "zookeeper://127.0.0.1:", "/dlock?session_timeout=2000ms"},
      {"redis", 30s, 2s, "redis://127.0.0.1:", "/0?lease=2000ms"},
      {"memcached", 30s, 3s, "memcached://127.0.0.1:", "?lease=3000ms"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(make_store(row.id, Pace::working)->lease(), row.working) << row.id;
    const auto store = make_store(row.id, Pace::short_leases);
    EXPECT_EQ(store->lease(), row.quick) << row.id;
    EXPECT_EQ(store->url(), row.scheme + std::to_string(store->port()) + row.end);
    EXPECT_EQ(store->url_through(7), row.scheme + std::string("7") + row.end);
  }
  const auto three = make_store("zookeeper3", Pace::short_leases)->url();
  EXPECT_EQ(std::count(three.begin(), three.end(), ','), 2) << three;
  EXPECT_TRUE(three.starts_with("zookeeper://127.0.0.1:")) << three;
  const auto local = make_store("local", Pace::working);
  EXPECT_EQ(local->lease(), 500ms);
  EXPECT_EQ(local->port(), 0);
  EXPECT_EQ(local->url_through(7), "");
  EXPECT_TRUE(local->version().starts_with("Linux "));
  EXPECT_FALSE(local->operations());
}

TEST(CompareStores, AUsersOwnIsLeftAloneAndItsUrlIsNotShown) {
  const auto own = make_user_store("redis://me:secret@host:1,other:2/0");
  EXPECT_EQ(own->kind().id, "your-redis");
  EXPECT_EQ(own->kind().title, "Your redis");
  EXPECT_EQ(own->kind().words, "your own, host:1,other:2");
  EXPECT_EQ(own->url(), "redis://me:secret@host:1,other:2/0");
  EXPECT_EQ(own->url_through(7), "");
  EXPECT_EQ(own->port(), 0);
  EXPECT_EQ(own->lease(), 30s);
  EXPECT_EQ(own->version(), "not asked");
  EXPECT_TRUE(own->faults().empty());
  EXPECT_TRUE(own->pids().empty());
  const auto folder = make_user_store("file:///a/b");
  EXPECT_EQ(folder->kind().id, "your-local");
  EXPECT_EQ(folder->kind().words, "your own, a folder");
}

TEST(CompareStores, ReadANumberBehindItsLabel) {
  using detail::number_behind;
  EXPECT_EQ(number_behind("a:1\r\nb:22\r\n", "b:"), 22U);
  EXPECT_EQ(number_behind("a:1", "a:"), 1U);
  EXPECT_EQ(number_behind("a:18446744073709551615 ", "a:"), 18446744073709551615ULL);
  EXPECT_EQ(number_behind("a:18446744073709551616", "a:"), std::nullopt);
  EXPECT_EQ(number_behind("a:x", "a:"), std::nullopt);
  EXPECT_EQ(number_behind("a:", "a:"), std::nullopt);
  EXPECT_EQ(number_behind("a:1", "b:"), std::nullopt);
}

TEST(CompareAddress, HasTheDefaultsOfItsScheme) {
  for (const auto& [url, scheme, port] : {std::tuple{"redis://h", "redis", 6379},
                                          {"memcached://h/", "memcached", 11211},
                                          {"zk://h?x=1", "zookeeper", 2181},
                                          {"zookeeper://h:99/p", "zookeeper", 99}}) {
    const auto address = parse_address(url);
    EXPECT_EQ(address.scheme, scheme);
    EXPECT_EQ(address.host, "h");
    EXPECT_EQ(address.port, port);
  }
  EXPECT_EQ(parse_address("redis://h/0?a=b").path, "/0");
  EXPECT_EQ(parse_address("redis://h?a=/b").path, "");
  EXPECT_EQ(parse_address("redis://u@h:1/0").hosts, "h:1");
}

// -- The run
// -----------------------------------------------------------------------------------------

TEST(ComparePlan, CountsScenariosRepeatsAndTries) {
  Options options;
  options.depth = Depth::quick;
  const auto speed = [&](const char* scenario, std::size_t stores) {
    options.scenarios = {scenario};
    return plan_speed(options, stores);
  };
  EXPECT_DOUBLE_EQ(speed("speed.uncontended", 1), 3);
  EXPECT_DOUBLE_EQ(speed("speed.uncontended", 3), 9);
  EXPECT_DOUBLE_EQ(speed("speed.cost", 1), 3.6);  // 0.6 s, as none is given
  EXPECT_DOUBLE_EQ(speed("safety", 1), 0);
  options.depth = Depth::standard;
  EXPECT_DOUBLE_EQ(speed("speed.own_locks", 1), 1.3 * 2 * 4 * 3);
  EXPECT_DOUBLE_EQ(speed("speed.holders", 1), 3.3 * 2 * 2) << "two repeats at most";
  const auto safety = [&](const char* scenario, std::vector<std::string> stores,
                          std::vector<std::string> urls = {}) {
    options.scenarios = {scenario};
    return plan_safety(options, stores, urls) / 0.75;
  };
  EXPECT_EQ(safety("safety.holder_killed", {"local", "redis"}), 6);
  EXPECT_EQ(safety("safety.holder_paused", {"local", "redis"}), 3) << "except local";
  EXPECT_EQ(safety("safety.holder_stopped", {"local", "redis"}), 3) << "on local alone";
  EXPECT_EQ(safety("safety.failover", {"redis", "redis-sentinel"}), 3) << "as it needs one";
  EXPECT_EQ(safety("safety.clock_step", {"redis", "memcached"}), 3) << "of its flavour";
  EXPECT_EQ(safety("pitfalls.blind_delete", {"redis", "memcached"}), 2) << "one try";
  EXPECT_EQ(safety("speed", {"redis"}), 0);
  const std::vector<std::string> urls{"redis://h", "file:///f"};
  EXPECT_EQ(safety("safety.order", {}, urls), 6);
  EXPECT_EQ(safety("safety.holder_paused", {}, urls), 3) << "except local";
  EXPECT_EQ(safety("safety.flush", {}, urls), 0) << "nothing is done to the server";
  EXPECT_EQ(safety("safety.reply_lost", {}, urls), 0) << "nothing is between";
  EXPECT_EQ(safety("safety.holder_stopped", {}, urls), 0);
  EXPECT_EQ(safety("pitfalls", {}, urls), 0);
  options.peers = {"redis-py", "kazoo"};
  EXPECT_EQ(safety("safety.holder_killed", {"redis", "zookeeper"}), 12) << "and their clients";
  EXPECT_EQ(safety("safety.holder_killed", {"redis-sentinel", "memcached"}), 6);
}

TEST(CompareProgress, SaysHowMuchIsDoneAndLeft) {
  Progress progress;
  const auto shown = [&](const char* what) {
    testing::internal::CaptureStderr();
    progress.begin(what);
    return testing::internal::GetCapturedStderr();
  };
  testing::internal::CaptureStderr();
  progress.note("hello");
  progress.done(1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dlock compare: hello\n");
  EXPECT_EQ(shown("x"), "dlock compare:   0 %, about 0 s left: x\n") << "without a plan";
  progress.plan(100);
  EXPECT_EQ(shown("x"), "dlock compare:   1 %, about 2 min left: x\n");
  progress.done(4);
  EXPECT_EQ(shown("y"), "dlock compare:   5 %, about 2 min left: y\n");
  // From six seconds on the plan is corrected, up to twice as quick.
  progress.done(1);
  EXPECT_EQ(shown("y"), "dlock compare:   6 %, about 47 s left: y\n");
  progress.done(200);
  EXPECT_EQ(shown("z"), "dlock compare: 100 %, about 0 s left: z\n");
  for (const auto& [seconds, left] :
       {std::pair{89.5, "89 s"}, {90.0, "2 min"}, {149.9, "2 min"}, {150.0, "3 min"}}) {
    Progress other;
    other.plan(seconds);
    testing::internal::CaptureStderr();
    other.begin("x");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "dlock compare:   0 %, about " + std::string(left) + " left: x\n");
  }
}

TEST(CompareInterrupt, EndsTheRunWithTheFirstSignal) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const auto send = [&](int signal) {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(signal);
    EXPECT_EQ(::write(ends[1], &info, sizeof info), static_cast<ssize_t>(sizeof info));
  };
  {
    Interrupt interrupt(ends[0], [] {});
    EXPECT_EQ(interrupt.signal(), 0);
    interrupt.check();
    const auto start = std::chrono::steady_clock::now();
    interrupt.sleep(150ms);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
    send(SIGTERM);
    EXPECT_THROW(interrupt.sleep(10s), Interrupted);
    EXPECT_EQ(interrupt.signal(), SIGTERM);
    EXPECT_THROW(interrupt.check(), Interrupted);
  }
  const auto twice = [&] {
    Interrupt interrupt(ends[0], [] { std::fputs("last resort", stderr); });
    send(SIGINT);
    send(SIGINT);
    std::this_thread::sleep_for(5s);  // the second signal ends the process before
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(twice(), testing::ExitedWithCode(128 + SIGINT), "last resort");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(CompareRunFolder, SweepsWhatNoRunUses) {
  const testkit::TempDir parent;
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", parent.path().c_str(), 1);
  {
    const RunFolder used;
    EXPECT_EQ(used.path().parent_path(), parent.path());
    EXPECT_TRUE(used.path().filename().string().starts_with("dlock-compare-run-"));
    testkit::write_file(used.path() / "file", "x");
    const auto left = parent / "dlock-compare-run-left", other = parent / "dlock-other";
    for (const auto& folder : {left, other}) {
      std::filesystem::create_directory(folder);
      testkit::write_file(folder / "file", "x");
    }
    testkit::write_file(parent / "dlock-compare-run-file", "no folder");
    EXPECT_EQ(RunFolder::sweep(), 1);
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(other));
    EXPECT_TRUE(std::filesystem::exists(used.path() / "file"));
    EXPECT_EQ(RunFolder::sweep(), 0);
  }
  EXPECT_EQ(RunFolder::sweep(), 0) << "the folder goes with its object";
  if (before == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", kept.c_str(), 1);
  }
}

TEST(CompareMachine, IsDescribed) {
  const auto machine = describe_machine();
  EXPECT_GT(machine.at("cores").to_number<int>(), 0);
  EXPECT_GT(machine.at("memory_gb").to_number<double>(), 0.1);
  EXPECT_LT(machine.at("memory_gb").to_number<double>(), 100'000);
  EXPECT_TRUE(machine.at("kernel").as_string().starts_with("Linux "));
  const std::string processor(machine.at("processor").as_string());
  EXPECT_FALSE(processor.empty());
  EXPECT_EQ(processor.find_first_of("\n\t:"), std::string::npos);
  EXPECT_GE(machine.at("load_before").to_number<double>(), 0);
}

TEST(CompareMachine, FiguresOfAProcessAreItsOwn) {
  const auto before = figures_of(::getpid());
  ASSERT_TRUE(before);
  EXPECT_GT(before->memory_mb, 1);
  EXPECT_LT(before->memory_mb, 10'000);
  std::jthread idle([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
  });
  const auto start = std::chrono::steady_clock::now();
  double work = 0;
  while (std::chrono::steady_clock::now() - start < 200ms) work += 1;
  const auto after = figures_of(::getpid());
  EXPECT_EQ(after->threads, before->threads + 1);
  EXPECT_GT(after->cpu_seconds - before->cpu_seconds, 0.005) << work;
  EXPECT_LT(after->cpu_seconds - before->cpu_seconds, 5);
  EXPECT_FALSE(figures_of(0));
}

TEST(ComparePeerPrograms, BelongToTheirStore) {
  Options options;
  options.peers = {"kazoo", "redis-py", "node-redlock", "curator"};
  const auto on = [&](const char* id) {
    return guards_on(options, make_store(id, Pace::working)->kind());
  };
  EXPECT_THAT(on("zookeeper"), ElementsAre("kazoo", "curator"));
  EXPECT_THAT(on("zookeeper3"), ElementsAre("kazoo", "curator"));
  EXPECT_THAT(on("redis"), ElementsAre("redis-py", "node-redlock"));
  EXPECT_THAT(on("redis-sentinel"), testing::IsEmpty());
  EXPECT_THAT(on("memcached"), testing::IsEmpty());
}

}  // namespace
}  // namespace dlock::compare
