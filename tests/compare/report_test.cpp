// SPDX-License-Identifier: Apache-2.0
//
// What reports say of made-up runs: how much each figure rests on, and no more than that.
#include "compare/report/report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <regex>

#include "compare/servers/store.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::array;
using boost::json::object;

object declared() {
  return {{"guarantee", "exclusive"},
          {"fair", true},
          {"token", "durable"},
          {"wake_up", "push"},
          {"assumptions", array{}}};
}

object empty_run() {
  return {{"schema", 1},
          {"dlock", "1.0"},
          {"command", "dlock compare"},
          {"depth", "standard"},
          {"finished", "2030-01-01 12:00:00 +0000"},
          {"seconds", 100},
          {"interrupted", false},
          {"machine", object{{"processor", "P"},
                             {"cores", 4},
                             {"memory_gb", 8},
                             {"kernel", "K"},
                             {"load_before", 0.1},
                             {"load_after", 0.5}}},
          {"stores", array{object{{"id", "redis"},
                                  {"title", "Redis"},
                                  {"family", "redis"},
                                  {"words", "one"},
                                  {"version", "7"},
                                  {"declared", declared()}}}},
          {"missing", array{}},
          {"results", array{}}};
}

/// `count` slices in which ours takes `ratio` times as long as the floor, give or take.
void add_speed(object& run, int count, double ratio, double scatter = 0.01) {
  for (int i = 0; i < count; ++i) {
    for (const char* driver : {"dlock", "floor"}) {
      const bool ours = std::string_view(driver) == "dlock";
      const double us = ours ? 100 * ratio * (1 + scatter * (i % 11 - 5)) : 100;
      const object histogram{{"count", 10}, {"buckets", array{array{100'000, 10}}}};
      run.at("results").as_array().push_back(object{
          {"kind", "speed"},
          {"scenario", "speed.uncontended"},
          {"store", "redis"},
          {"driver", driver},
          {"param", 1},
          {"repeat", i},
          {"round", i % 3},
          {"values", object{{"pair_p50_us", us}, {"acquire_p50_us", us}, {"cpu_us_per_pair", us}}},
          {"pair", histogram}});
    }
  }
}

void add_fault(object& run, const char* scenario, int tries, int with_two_holders = 0) {
  for (int i = 0; i < tries; ++i) {
    run.at("results").as_array().push_back(
        object{{"kind", "safety"},
               {"scenario", scenario},
               {"store", "redis"},
               {"repeat", i},
               {"values", object{{"double_grants", i < with_two_holders ? 1 : 0},
                                 {"overlap_ms", i < with_two_holders ? 40 : 0},
                                 {"stale_writes", 0},
                                 {"stale_writes_fenced", 0},
                                 {"grants", 2},
                                 {"granted_ms", 100 + i}}},
               {"missed", array{}},
               {"contradictions", array{}},
               {"broken_assumptions", array{}},
               {"events", array{object{{"event", "granted"}}, object{{"event", "fault"}}}}});
  }
}

const object& section_of(const object& document, std::string_view id) {
  for (const auto& section : document.at("sections").as_array()) {
    if (section.at("id").as_string() == id) return section.as_object();
  }
  throw std::out_of_range(std::string(id));
}

const object& table_of(const object& section) {
  for (const auto& block : section.at("blocks").as_array()) {
    if (block.at("kind") == "table") return block.as_object();
  }
  throw std::out_of_range("no table");
}

std::string tone(const boost::json::value& cell) {
  const auto* found = cell.as_object().if_contains("tone");
  return found == nullptr ? "" : std::string(found->as_string());
}

std::string text(const boost::json::value& cell) {
  return std::string(cell.at("text").as_string());
}

/// The overview's cell of Redis in that column.
const boost::json::value& glance(const object& document, std::size_t column) {
  return table_of(section_of(document, "overview")).at("rows").at(0).at(column);
}

constexpr std::size_t kSpeed = 2, kSeen = 4;

TEST(Report, NoFigureWithoutItsNumberOfSamples) {
  auto run = empty_run();
  add_speed(run, 30, 1.2);
  add_fault(run, "safety.holder_killed", 3, 1);
  const auto document = make_document({run});
  const std::regex figure(R"(\d( µs| ms| s| MB| %|/s|( ×)))");
  const std::regex samples(R"(\bn \d|\d (try|tries|acquisitions)|in \d+ of \d+)");
  int seen = 0;
  for (const auto& section : document.at("sections").as_array()) {
    if (section.at("id") == "method") continue;
    for (const auto& block : section.at("blocks").as_array()) {
      if (block.at("kind") == "chart") {
        const std::string title(block.at("title").as_string());
        EXPECT_TRUE(std::regex_search(title + boost::json::serialize(block.at("sets")), samples))
            << title;
      }
      if (block.at("kind") != "table") continue;
      std::string headers;
      for (const auto& header : block.at("headers").as_array()) {
        headers += std::string(header.as_string()) + "|";
      }
      const bool of_row = headers.find("Samples") != std::string::npos ||
                          headers.find("Tries") != std::string::npos;
      for (const auto& row : block.at("rows").as_array()) {
        for (const auto& cell : row.as_array()) {
          if (!std::regex_search(text(cell), figure)) continue;
          ++seen;
          EXPECT_TRUE(of_row || std::regex_search(text(cell), samples)) << text(cell);
        }
      }
    }
  }
  EXPECT_GT(seen, 10);
  // The three show the same.
  const auto ratio = std::string("1.19 × floor (1.18 to 1.21, n 30)");
  EXPECT_NE(to_terminal(document).find(ratio), std::string::npos) << to_terminal(document);
  EXPECT_NE(to_markdown(document).find(ratio), std::string::npos);
  EXPECT_NE(to_html(document).find(ratio), std::string::npos);
}

TEST(Report, ARatioOfFewSamplesIsGreyAndSaysSo) {
  auto run = empty_run();
  add_speed(run, 9, 0.5);
  const auto document = make_document({run});
  EXPECT_EQ(tone(glance(document, kSpeed)), "thin");
  EXPECT_NE(text(glance(document, kSpeed)).find("n 9: too few to judge"), std::string::npos);
  for (const auto& page : {to_terminal(document), to_markdown(document), to_html(document)}) {
    EXPECT_NE(page.find("too few to judge"), std::string::npos);
  }
  const auto& row = table_of(section_of(document, "speed.uncontended")).at("rows").at(0);
  EXPECT_EQ(tone(row.as_array().back()), "thin");
  // 90 values say nothing of the slowest hundredth.
  EXPECT_EQ(text(row.at(3)), "- (n 90: too few)");
}

TEST(Report, ColourOnlyWhereTheWholeIntervalIsOnOneSide) {
  const auto tone_at = [](double ratio, double scatter) {
    auto run = empty_run();
    add_speed(run, 33, ratio, scatter);
    return tone(glance(make_document({run}), kSpeed));
  };
  EXPECT_EQ(tone_at(0.8, 0.01), "good");
  EXPECT_EQ(tone_at(0.95, 0.05), "");  // it reaches beyond 1
  EXPECT_EQ(tone_at(1.7, 0.01), "warn");
  EXPECT_EQ(tone_at(1.55, 0.05), "");
}

TEST(Report, ABusyMachineIsABannerAndColoursNothing) {
  auto run = empty_run();
  add_speed(run, 30, 0.5);
  run.at("machine").as_object()["busy"] =
      object{{"others_percent", 40},     {"worst_others_percent", 90}, {"steal_percent", 0},
             {"worst_steal_percent", 0}, {"looks", array{}},           {"seconds", 100}};
  const auto document = make_document({run});
  EXPECT_EQ(tone(glance(document, kSpeed)), "");
  const std::string banner =
      "The machine was busy: other processes took 40 % of all processors, 90 % at the worst";
  EXPECT_EQ(to_terminal(document).find("! " + banner), 0U);
  const auto markdown = to_markdown(document);
  EXPECT_LT(markdown.find(banner), markdown.find("## "));
  EXPECT_NE(to_html(document).find(banner), std::string::npos);

  auto quiet = empty_run();
  add_speed(quiet, 30, 0.5);
  EXPECT_TRUE(make_document({quiet}).at("banners").as_array().empty());
}

TEST(Report, OneHolderSaysInHowManyTries) {
  auto run = empty_run();
  add_fault(run, "safety.holder_killed", 3);
  add_fault(run, "safety.holder_paused", 3);
  auto document = make_document({run});
  EXPECT_EQ(text(glance(document, kSeen)),
            "one holder in all 6 tries (2 faults, 12 acquisitions); two may still come in up to "
            "39 % of such");
  EXPECT_EQ(tone(glance(document, kSeen)), "thin");
  const auto& killed = table_of(section_of(document, "safety.holder_killed")).at("rows").at(0);
  EXPECT_EQ(text(killed.at(1)), "one holder in 3 tries");
  EXPECT_EQ(tone(killed.at(1)), "thin");
  EXPECT_EQ(text(killed.at(2)), "3 (6)");
  EXPECT_EQ(text(killed.at(8)), "101 ms");  // the median

  add_fault(run, "safety.flush", 30);
  document = make_document({run});
  EXPECT_EQ(tone(glance(document, kSeen)), "good");
}

TEST(Report, TriesWithoutAFaultAreNone) {
  auto run = empty_run();
  add_fault(run, "safety.order", 3);
  for (auto& result : run.at("results").as_array()) result.at("events") = array{};
  EXPECT_EQ(text(glance(make_document({run}), kSeen)),
            "one holder in 6 acquisitions; no fault was tried");
}

TEST(Report, TwoHoldersSayInHowManyTries) {
  auto run = empty_run();
  add_fault(run, "safety.holder_killed", 3, 1);
  const auto document = make_document({run});
  EXPECT_EQ(text(glance(document, kSeen)),
            "two holders in 1 of 3 tries, at most for 40.0 ms (1 fault, 6 acquisitions)");
  EXPECT_EQ(tone(glance(document, kSeen)), "warn");
  const auto& cell = table_of(section_of(document, "safety")).at("rows").at(0).at(1);
  EXPECT_EQ(text(cell), "two in 1 of 3, 40.0 ms");
}

TEST(Report, OneContradictionOfManyTriesIsRed) {
  auto run = empty_run();
  add_fault(run, "safety.holder_killed", 30);
  run.at("results").at(7).as_object()["contradictions"] = array{"it did not"};
  const auto document = make_document({run});
  EXPECT_EQ(tone(glance(document, kSeen)), "bad");
  const auto terminal = to_terminal(document);
  EXPECT_NE(terminal.find("safety.holder_killed, Redis, no. 8: it did not"), std::string::npos)
      << terminal;
  EXPECT_NE(terminal.find("contradiction, 1 of 30"), std::string::npos);
}

TEST(Report, AStoreThatCouldNotBeReachedIsSaid) {
  auto run = empty_run();
  run.at("stores").as_array().push_back(
      object{{"id", "zookeeper"}, {"title", "ZooKeeper"}, {"failed", "no place"}});
  EXPECT_NE(to_terminal(make_document({run})).find("ZooKeeper could not be measured: no place"),
            std::string::npos);
}

/// A run over all stores, with the longest words that they declare.
object wide_run() {
  auto run = empty_run();
  auto& stores = run.at("stores").as_array();
  auto says = declared();
  says["assumptions"] =
      array{array{"server_clock_not_stepped", ""}, array{"clock_rate_bounded", ""}};
  stores.clear();
  for (const auto& kind : store_kinds()) {
    stores.push_back(object{{"id", kind.id},
                            {"title", kind.title},
                            {"family", kind.family},
                            {"words", kind.words},
                            {"version", "1.2.3"},
                            {"declared", says}});
  }
  return run;
}

TEST(Report, SeparatesStoresBySemicolonsAsTheirNamesHaveCommas) {
  const auto document = make_document({wide_run()});
  const auto& row = table_of(section_of(document, "advice")).at("rows").at(0);
  EXPECT_NE(text(row.at(1)).find("ZooKeeper, one node; ZooKeeper, three nodes"), std::string::npos)
      << text(row.at(1));
}

// A printer's rules hold in a frame as wide as the paper's text when they are applied to a screen.
TEST(Report, PrintsOnA4AndLetterWithoutACutColumn) {
  const testkit::TempDir folder("dlock-report-test");
  auto run = wide_run();
  add_speed(run, 30, 1);
  write_reports({run}, folder.path());
  constexpr const char* kLook = R"(<script>
for (const sheet of document.styleSheets) for (const rule of sheet.cssRules) {
  if (rule.media && rule.media.mediaText === 'print') rule.media.mediaText = 'all';
}
const cut = [...document.querySelectorAll('.table, td, th, .canvas, h2, p')].filter((e) => {
  const around = e.getBoundingClientRect();
  return e.scrollWidth > e.clientWidth + 1 || around.right > innerWidth + 1;
}).map((e) => e.className + ' ' + e.textContent.slice(0, 40));
const tables = document.querySelectorAll('.table').length;
parent.postMessage('LOOK' + JSON.stringify({width: innerWidth, tables, cut}) + 'KOOL', '*');
</script>)";
  constexpr const char* kFrames = R"(<body><pre></pre><script>
onmessage = (message) => { document.querySelector('pre').textContent += message.data; };
for (const width of [718, 740]) {
  const frame = document.createElement('iframe');
  frame.style = 'border:0;height:2400px;width:' + width + 'px';
  frame.src = 'look.html';
  document.body.append(frame);
}
</script>)";
  testkit::write_file(folder / "look.html", testkit::read_file(folder / "report.html") + kLook);
  testkit::write_file(folder / "frames.html", kFrames);
  const auto browser = testkit::find_server_program("chromium", "chromium").string();
  const auto page = "file://" + (folder / "frames.html").string();
  const auto seen = testkit::run(
      {.argv = {browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1600,2400",
                "--dump-dom", "--virtual-time-budget=20000", page},
       .env = {{"HOME", folder.path().string()}}},
      {}, testkit::within(std::chrono::seconds(90)));
  for (const char* width : {"718", "740"}) {
    EXPECT_THAT(seen.out, testing::ContainsRegex(std::string("LOOK.\"width\":") + width +
                                                 ",\"tables\":[1-9][0-9]*,\"cut\":\\[\\].KOOL"));
  }
}

TEST(Report, SaysWhatAQuickRunLeftOut) {
  auto run = empty_run();
  run["left_out"] = array{"speed.cost", "pitfalls.herd"};
  const auto document = make_document({run});
  for (const auto& page : {to_terminal(document), to_markdown(document), to_html(document)}) {
    EXPECT_NE(page.find("--quick left out 2 scenarios: speed.cost, pitfalls.herd"),
              std::string::npos);
    EXPECT_NE(page.find("--scenarios ID"), std::string::npos);
  }
}

TEST(Report, OfTwoRunsOnlyWhatIsOutsideBothIntervalsDiffers) {
  const auto verdict_of = [](int count, double one, double other) {
    auto first = empty_run(), second = empty_run();
    add_speed(first, count, one);
    add_speed(second, count, other);
    const auto document = make_document({first, second});
    return text(table_of(section_of(document, "repeat")).at("rows").at(0).at(4));
  };
  EXPECT_EQ(verdict_of(33, 1.0, 1.02), "no difference shown");
  EXPECT_EQ(verdict_of(33, 1.0, 1.2), "differ: outside both intervals");
  EXPECT_EQ(verdict_of(9, 1.0, 5.0), "too few samples to tell");
}

TEST(Report, OfTwoRunsWhatIsOfOneSaysSo) {
  auto run = empty_run();
  add_speed(run, 30, 1);
  const auto document = make_document({run, run});
  for (const char* id : {"advice", "trade-offs", "slow"}) {
    EXPECT_EQ(section_of(document, id).at("blocks").at(0).at("text"), "Of the first run.") << id;
  }
}

}  // namespace
}  // namespace dlock::compare
