// SPDX-License-Identifier: Apache-2.0
//
// Compares the whole page of made-up runs with the files in tests/compare/pages/. After a wanted
// change, DLOCK_WRITE_PAGES=1 compare_figures_test --gtest_filter='Page.*' writes them again; check
// the difference.
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "compare/drivers/histogram.hpp"
#include "compare/report/report.hpp"
#include "compare/suite/scenario.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::array;
using boost::json::object;

object store(const char* id, const char* title, const char* guarantee, bool fair, const char* token,
             const char* wake_up, array assumptions) {
  return {{"id", id},
          {"title", title},
          {"family", id},
          {"words", std::string("how ") + id + " is set up"},
          {"version", std::string(id) + " 1.2"},
          {"declared", object{{"guarantee", guarantee},
                              {"fair", fair},
                              {"token", token},
                              {"wake_up", wake_up},
                              {"assumptions", std::move(assumptions)}}}};
}

object bare_run() {
  return {{"schema", 1},
          {"dlock", "1.0"},
          {"command", "dlock compare"},
          {"depth", "standard"},
          {"finished", "2030-01-01 12:00:00 +0000"},
          {"seconds", 99.6},
          {"interrupted", false},
          {"machine", object{{"processor", "P"},
                             {"cores", 4},
                             {"memory_gb", 7.77},
                             {"kernel", "K"},
                             {"load_before", 0.124},
                             {"load_after", 0.5}}},
          {"stores",
           array{store("redis", "Redis", "best_effort", true, "time_seeded", "push",
                       array{array{"clock", "x"}, array{"disk", "y"}}),
                 store("local", "Files", "exclusive", false, "durable", "poll", array{}),
                 object{{"id", "zookeeper"}, {"title", "ZooKeeper"}, {"failed", "no place"}}}},
          {"missing", array{object{{"store", "memcached"}, {"why", "it is not installed"}}}},
          {"left_out", array{"speed.cost", "pitfalls.herd"}},
          {"results", array{}}};
}

/// Adds one slice. The values of each metric differ, and rise with the number of the slice.
void add_slice(object& run, const object& scenario, const char* store, const char* driver,
               int param, int repeat, double factor) {
  object values, result;
  double base = 3 * factor;
  for (const auto& metric : scenario.at("metrics").as_array()) {
    const auto& fields = metric.as_object();
    values[fields.at("id").as_string()] = base * (1 + 0.01 * (repeat % 7)) * param;
    if (const auto* name = fields.if_contains("histogram")) {
      Histogram histogram;
      for (int i = 1; i <= 30; ++i) {
        histogram.add(static_cast<std::uint64_t>(base * 1000 * i));
      }
      result[name->as_string()] = histogram.to_json();
    }
    base *= 13;
  }
  result["kind"] = "speed";
  result["scenario"] = scenario.at("id");
  result["store"] = store;
  result["driver"] = driver;
  result["param"] = param;
  result["repeat"] = repeat;
  result["round"] = repeat / 10;
  result["values"] = std::move(values);
  run.at("results").as_array().push_back(std::move(result));
}

/// One scenario of each kind on both stores, with some gaps.
void add_speed(object& run, double factor, std::set<std::string> ids) {
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    if (ids.count(scenario.at("id").as_string().c_str()) == 0) continue;
    const bool few = scenario.contains("most_repeats");
    for (const int param : {1, 4}) {
      if (param == 4 && !scenario.contains("param_name")) continue;
      for (int repeat = 0; repeat < (few ? 2 : 30); ++repeat) {
        add_slice(run, scenario, "redis", "dlock", param, repeat, factor);
        if (!scenario.contains("no_floor")) {
          add_slice(run, scenario, "redis", "floor", param, repeat, 1 + 0.02 * (repeat % 3));
        }
        if (param == 1 && repeat % 2 == 0) {
          add_slice(run, scenario, "redis", "kazoo", param, repeat, factor * 0.8);
        }
        if (repeat < 7) add_slice(run, scenario, "local", "dlock", param, repeat, factor * 90);
      }
    }
  }
  auto& results = run.at("results").as_array();
  results.push_back(object{{"kind", "speed"},
                           {"scenario", "speed.uncontended"},
                           {"store", "local"},
                           {"driver", "floor"},
                           {"param", 1},
                           {"repeat", 0},
                           {"failed", "it ended"}});
}

object one_try(const char* kind, const char* scenario, const char* store, int repeat, object values,
               bool with_fault = true) {
  array events{object{{"event", "granted"}}};
  if (with_fault) events.push_back(object{{"event", "fault"}});
  return {{"kind", kind},
          {"scenario", scenario},
          {"store", store},
          {"repeat", repeat},
          {"values", std::move(values)},
          {"missed", array{}},
          {"contradictions", array{}},
          {"broken_assumptions", array{}},
          {"events", std::move(events)}};
}

object counts(int twice, double overlap, int stale, int fenced) {
  return {{"double_grants", twice},        {"overlap_ms", overlap}, {"stale_writes", stale},
          {"stale_writes_fenced", fenced}, {"grants", 2},           {"passed_over", 0}};
}

void add_safety(object& run) {
  auto& results = run.at("results").as_array();
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto values = counts(0, 0, 0, 0);
    values["granted_ms"] = 100 + repeat;
    values["told_ms"] = 2000.5;
    results.push_back(one_try("safety", "safety.holder_killed", "redis", repeat, values));
    // Two holders in one of three tries.
    values = counts(repeat == 1 ? 1 : 0, repeat == 1 ? 41.25 : 0, repeat, 0);
    if (repeat > 0) values["progress_ms"] = 30;
    results.push_back(one_try("safety", "safety.flush", "redis", repeat, values));
    results.back().as_object()["broken_assumptions"] = array{"disk"};
    // The same fault, and nothing happens.
    results.push_back(one_try("safety", "safety.eviction", "redis", repeat, counts(0, 0, 0, 0)));
    results.back().as_object()["broken_assumptions"] = array{"disk", "clock"};
    results.push_back(
        one_try("safety", "safety.holder_paused", "redis", repeat, counts(1, 9, 1, 1)));
    // Contradictions in two of three.
    results.push_back(
        one_try("safety", "safety.order", "local", repeat, counts(0, 0, 0, 0), false));
    results.back().as_object()["values"].as_object()["wake_up_ms"] = 1.5;
    if (repeat != 1) {
      results.back().as_object()["contradictions"] = array{"passed over", "told late"};
    }
    // Another client.
    results.push_back(one_try("peer", "safety.holder_killed", "redis", repeat, counts(0, 0, 0, 0)));
    results.back().as_object()["driver"] = "kazoo";
    results.push_back(one_try("peer", "safety.holder_killed", "redis", repeat,
                              counts(repeat == 0 ? 1 : 0, 5, 0, 0)));
    results.back().as_object()["driver"] = "redis-py";
    results.push_back(one_try("peer", "safety.holder_killed", "local", repeat, counts(0, 0, 0, 0)));
    results.back().as_object()["driver"] = "curator";
    results.back().as_object()["missed"] = array{"it was never granted the lock"};
  }
  for (int repeat = 0; repeat < 30; ++repeat) {
    results.push_back(one_try("safety", "safety.wake_up", "redis", repeat, counts(0, 0, 0, 0)));
  }
  results.push_back(object{{"kind", "safety"},
                           {"scenario", "safety.wake_up"},
                           {"store", "local"},
                           {"repeat", 0},
                           {"failed", "the server ended"}});
}

void add_pitfalls(object& run) {
  auto& results = run.at("results").as_array();
  const auto both = [&](const char* id, bool naive, bool ours) {
    results.push_back(object{{"kind", "pitfall"},
                             {"scenario", id},
                             {"store", "redis"},
                             {"repeat", 0},
                             {"naive", object{{"happened", naive}}},
                             {"ours", object{{"happened", ours}}},
                             {"contradictions", array{}}});
  };
  both("pitfalls.setnx_expire", true, false);
  both("pitfalls.blind_delete", false, true);
  results.push_back(object{{"kind", "pitfall"},
                           {"scenario", "pitfalls.evicted"},
                           {"store", "memcached"},
                           {"repeat", 0},
                           {"failed", "no memory"}});
  results.push_back(object{{"kind", "pitfall"},
                           {"scenario", "pitfalls.herd"},
                           {"store", "zookeeper"},
                           {"repeat", 0},
                           {"herd", array{object{{"waiters", 10}, {"naive", 10}, {"ours", 1}},
                                          object{{"waiters", 100}, {"naive", 100}, {"ours", 2}}}}});
}

/// Returns the document with a line for each row, chart and text. Cells have their colours.
std::string lines_of(const object& document) {
  std::string all = "title: " + boost::json::serialize(document.at("title")) + "\n" +
                    "subtitle: " + boost::json::serialize(document.at("subtitle")) + "\n";
  for (const auto& banner : document.at("banners").as_array()) {
    all += "banner: " + boost::json::serialize(banner) + "\n";
  }
  for (const auto& section : document.at("sections").as_array()) {
    all += "\n== " + boost::json::serialize(section.at("id")) + " " +
           boost::json::serialize(section.at("title")) + "\n";
    for (const auto& entry : section.at("blocks").as_array()) {
      auto block = entry.as_object();
      if (block.at("kind") != "table") {
        all += boost::json::serialize(block) + "\n";
        continue;
      }
      all += "table" + std::string(block.contains("terminal") ? " (terminal)" : "") + ": " +
             boost::json::serialize(block.at("headers")) + "\n";
      for (const auto& row : block.at("rows").as_array()) {
        all += "  ";
        for (const auto& cell : row.as_array()) {
          const auto* tone = cell.as_object().if_contains("tone");
          all += "| " + std::string(cell.at("text").as_string()) +
                 (tone == nullptr ? "" : " [" + std::string(tone->as_string()) + "]") + " ";
        }
        all += "\n";
      }
    }
  }
  return all;
}

void expect_page(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(DLOCK_PAGES) / name;
  if (std::getenv("DLOCK_WRITE_PAGES") != nullptr) testkit::write_file(file, text);
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  const auto expected = testkit::read_file(file);
  if (text == expected) return;
  const auto differs = std::mismatch(text.begin(), text.end(), expected.begin(), expected.end());
  const auto at = static_cast<std::size_t>(differs.first - text.begin());
  const auto line = std::count(text.begin(), differs.first, '\n') + 1;
  const auto begin = at < 40 ? 0 : at - 40;
  ADD_FAILURE() << file << ":" << line << "\nis:       " << text.substr(begin, 160)
                << "\nexpected: " << expected.substr(begin, 160);
}

object whole_run() {
  auto run = bare_run();
  add_speed(run, 1.6,
            {"speed.uncontended", "speed.own_locks", "speed.open_load", "speed.hand_over",
             "speed.read_mostly", "speed.holders"});
  add_safety(run);
  add_pitfalls(run);
  return run;
}

TEST(Page, ShowsARunWithEverything) {
  const auto document = make_document({whole_run()});
  expect_page("whole.txt", lines_of(document));
  expect_page("whole-terminal.txt", to_terminal(document));
  expect_page("whole-markdown.txt", to_markdown(document));
}

TEST(Page, ShowsTwoRunsSideBySide) {
  auto first = bare_run();
  add_speed(first, 1.6, {"speed.uncontended", "speed.hand_over"});
  add_safety(first);
  add_pitfalls(first);
  auto second = bare_run();
  second["interrupted"] = true;
  second["left_out"] = array{};
  second["seconds"] = 1234.5;
  add_speed(second, 0.7, {"speed.uncontended", "speed.hand_over"});
  second.at("machine").as_object()["busy"] =
      object{{"others_percent", 40.04},    {"worst_others_percent", 90}, {"steal_percent", 0.25},
             {"worst_steal_percent", 0.5}, {"looks", array{1, 2, 3}},    {"seconds", 100}};
  const auto document = make_document({first, second});
  expect_page("two.txt", lines_of(document));
  expect_page("two-terminal.txt", to_terminal(document));
}

TEST(Page, ShowsARunWithoutResults) {
  const auto document = make_document({bare_run()});
  expect_page("empty.txt", lines_of(document));
  expect_page("empty-terminal.txt", to_terminal(document));
}

TEST(Page, ListsTheScenarios) { expect_page("list.txt", scenario_list()); }

}  // namespace
}  // namespace dlock::compare
