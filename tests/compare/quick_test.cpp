// SPDX-License-Identifier: Apache-2.0
//
// A quick run over all stores, and its page in a browser: figures are read back from the page, and
// it is looked at in two widths, light and dark. The screenshots stay in the build folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "testkit/process.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using boost::json::object;

// Put at the end of the page; says what it is like there.
constexpr const char* kLook = R"(<script>
const text = (element) => element.textContent.slice(0, 60);
const all = (selector) => [...document.querySelectorAll(selector)];
const shown = (element) => element.getClientRects().length > 0;
const cut = all('h1,h2,p,li,th,td,figcaption,summary,.table').filter(shown)
  .filter((e) => e.scrollWidth > e.clientWidth + 1).map(text);
const outside = all('td > span, figcaption, h2').filter(shown).filter((e) => {
  const own = e.getBoundingClientRect(), around = e.parentElement.getBoundingClientRect();
  return own.right > around.right + 1 || own.left < around.left - 8 || own.bottom > around.bottom + 1;
}).map(text);
const boxes = all('main > section').map((e) => e.getBoundingClientRect());
const overlapping = boxes.filter((box, i) => i > 0 && box.top < boxes[i - 1].bottom).length;
const result = {
  sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  width: innerWidth, cut, outside, overlapping,
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  ground: getComputedStyle(document.body).backgroundColor,
  charts: Number(document.documentElement.dataset.charts),
  empty: all('canvas').filter((e) => e.width === 0 || e.height === 0).length,
  overview: all('#overview tbody tr').map((row) => [...row.cells].map((c) => c.innerText)),
  sections: all('main > section').map((e) => e.id),
};
parent.postMessage('LOOK' + JSON.stringify(result) + 'KOOL', '*');
</script>)";

// A window cannot be as narrow as a phone; a frame can.
constexpr const char* kFrame = R"(<body style="margin:0"><script>
onmessage = (message) => { document.body.textContent = message.data; };
const frame = document.createElement('iframe');
frame.style = 'border:0;height:2400px;width:' + location.hash.slice(1) + 'px';
frame.src = 'look.html';
document.body.append(frame);
</script>)";

struct View {
  const char* name;
  int width;
  bool dark;
};

std::vector<std::string> browser(const View& view) {
  return {testkit::find_server_program("chromium", "chromium").string(),
          "--headless",
          "--no-sandbox",
          "--disable-gpu",
          "--hide-scrollbars",
          "--window-size=" + std::to_string(view.width) + ",2400",
          view.dark ? "--blink-settings=preferredColorScheme=0"
                    : "--blink-settings=preferredColorScheme=1"};
}

std::string unescaped(std::string text) {
  for (const auto& [name, byte] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      text.replace(at, std::string_view(name).size(), byte);
    }
  }
  return text;
}

object look(const std::filesystem::path& page, const View& view, const testkit::TempDir& home) {
  auto argv = browser(view);
  argv.insert(argv.end(), {"--dump-dom", "--virtual-time-budget=20000",
                           "file://" + page.string() + "#" + std::to_string(view.width)});
  const auto run = testkit::run({.argv = argv, .env = {{"HOME", home.path().string()}}}, {},
                                testkit::within(std::chrono::seconds(90)));
  const auto begin = run.out.find("LOOK{");
  const auto end = run.out.find("}KOOL");
  if (begin == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "the page did not say what it is like: " << run.err;
    return {};
  }
  return boost::json::parse(unescaped(run.out.substr(begin + 4, end - begin - 3))).as_object();
}

void screenshot(const std::filesystem::path& page, const View& view, const testkit::TempDir& home) {
  std::filesystem::create_directories(DLOCK_SCREENSHOTS);
  const auto file = std::filesystem::path(DLOCK_SCREENSHOTS) / (std::string(view.name) + ".png");
  std::filesystem::remove(file);
  auto argv = browser(view);
  argv.insert(argv.end(), {"--screenshot=" + file.string(), "file://" + page.string()});
  testkit::run({.argv = argv, .env = {{"HOME", home.path().string()}}}, {},
               testkit::within(std::chrono::seconds(90)));
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_GT(std::filesystem::file_size(file), 50'000U);
}

void check_view(const object& seen, const View& view) {
  SCOPED_TRACE(view.name);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.at("width").to_number<int>(), view.width);
  EXPECT_LE(seen.at("sideways").to_number<int>(), 0);
  EXPECT_EQ(seen.at("cut").as_array(), boost::json::array());
  EXPECT_EQ(seen.at("outside").as_array(), boost::json::array());
  EXPECT_EQ(seen.at("overlapping").to_number<int>(), 0);
  EXPECT_EQ(seen.at("dark").as_bool(), view.dark);
  EXPECT_EQ(seen.at("ground").as_string(), view.dark ? "rgb(18, 22, 29)" : "rgb(246, 247, 249)");
  EXPECT_EQ(seen.at("charts").to_number<int>(), 4);  // two of each scenario of speed
  EXPECT_EQ(seen.at("empty").to_number<int>(), 0);
}

/// What the page's first table says is what the raw data says.
void check_figures(const object& seen, const object& raw) {
  const auto& rows = seen.at("overview").as_array();
  const auto& stores = raw.at("stores").as_array();
  ASSERT_EQ(rows.size(), stores.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at(0).as_string(), stores[i].at("title").as_string());
    std::vector<double> slices;
    for (const auto& result : raw.at("results").as_array()) {
      if (result.at("scenario") != "speed.uncontended" || result.at("driver") != "dlock") continue;
      if (result.at("store") != stores[i].at("id")) continue;
      slices.push_back(result.at("values").at("pair_p50_us").to_number<double>());
    }
    ASSERT_FALSE(slices.empty());
    std::sort(slices.begin(), slices.end());
    const double us = (slices[(slices.size() - 1) / 2] + slices[slices.size() / 2]) / 2;
    const std::string said(rows[i].at(2).as_string());
    const bool in_ms = said.substr(0, said.find(',')).find(" ms") != std::string::npos;
    EXPECT_NEAR(std::stod(said) * (in_ms ? 1000 : 1), us, us * 0.05) << said;
  }
}

/// Of each scenario on each store: thirty slices of dlock, three tries of a fault.
void check_samples(const object& raw) {
  std::map<std::string, int> counts;
  for (const auto& result : raw.at("results").as_array()) {
    if (result.at("kind") == "speed" && result.at("driver") != "dlock") continue;
    const std::string kind(result.at("kind").as_string());
    ++counts[kind + " " + result.at("scenario").as_string().c_str() + " " +
             result.at("store").as_string().c_str()];
  }
  for (const auto& [what, count] : counts) {
    EXPECT_EQ(count, what.starts_with("speed") ? 30 : 3) << what;
  }
  const auto& busy = raw.at("machine").at("busy");
  EXPECT_GT(busy.at("looks").as_array().size(), 5U);
}

/// Checks that each store has 30 slices of dlock, and 30 with `cohort=3` beside them. How the rates
/// compare is a figure of a quiet machine and not checked.
void check_cohorts(const object& raw) {
  std::map<std::string, std::map<std::string, int>> slices;
  for (const auto& result : raw.at("results").as_array()) {
    if (result.at("scenario") != "speed.hand_over") continue;
    EXPECT_GT(result.at("values").at("handovers_per_s").to_number<double>(), 0);
    ++slices[result.at("store").as_string().c_str()][result.at("driver").as_string().c_str()];
  }
  EXPECT_EQ(slices.size(), raw.at("stores").as_array().size());
  for (auto& [store, drivers] : slices) {
    EXPECT_EQ(drivers["dlock, cohort=3"], 30) << store;
    EXPECT_EQ(drivers["dlock"], 30) << store;
  }
}

TEST(CompareQuick, MeasuresEveryStoreAndMakesAPageToLookAt) {
  testkit::TempDir folder, home;
  const auto run =
      testkit::run({.argv = {DLOCK_COMMAND, "compare", "--quick", "--out", folder.path().string()}},
                   {}, testkit::within(std::chrono::minutes(8)));
  EXPECT_EQ(run.status.shell_status(), 0) << run.out << run.err;
  const auto raw = boost::json::parse(testkit::read_file(folder / "raw.json")).as_object();
  std::cout << "the quick run took " << raw.at("seconds") << " s\n";

  std::set<std::string> scenarios;
  for (const auto& result : raw.at("results").as_array()) {
    scenarios.emplace(result.at("scenario").as_string());
    EXPECT_FALSE(result.as_object().contains("failed")) << result;
  }
  EXPECT_EQ(raw.at("stores").as_array().size(), 7U);
  // Fewer scenarios, each with as many samples as in a longer run; it says which it left out.
  EXPECT_EQ(scenarios.size(), 8U);
  EXPECT_GT(raw.at("left_out").as_array().size(), 15U);
  EXPECT_NE(run.out.find("--quick left out"), std::string::npos);
  check_samples(raw);
  check_cohorts(raw);
  EXPECT_NE(testkit::read_file(folder / "report.md").find("## At a glance"), std::string::npos);

  const auto page = testkit::read_file(folder / "report.html");
  const std::string outward = page.substr(0, page.find("<script type="));
  EXPECT_EQ(outward.find("http"), std::string::npos) << "the page must not need the network";
  testkit::write_file(folder / "look.html", page + kLook);
  testkit::write_file(folder / "frame.html", kFrame);
  for (const View view : {View{"desktop-light", 1280, false}, View{"desktop-dark", 1280, true},
                          View{"phone-light", 390, false}, View{"phone-dark", 390, true}}) {
    const auto seen = look(folder / "frame.html", view, home);
    check_view(seen, view);
    if (!view.dark) check_figures(seen, raw);
    screenshot(folder / "report.html", view, home);
  }
}

}  // namespace
}  // namespace dlock::compare
