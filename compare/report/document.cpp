// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>

#include "compare/embedded.hpp"
#include "compare/report/blocks.hpp"
#include "compare/report/report.hpp"
#include "compare/suite/scenario.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {

namespace report {

namespace {

std::string text(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::string figure_with_ratio(const Figures& figures, const Spot& spot, std::string_view metric,
                              std::string_view unit) {
  const auto ours = figures.figure(spot, metric);
  if (!ours) return "-";
  const auto ratio = figures.ratio(spot, "floor", metric);
  return show(ours->value, unit) + (ratio ? fmt::format(" ({:.2f} × floor)", ratio->value) : "");
}

std::int64_t last_param(const Figures& figures, std::string_view scenario) {
  const auto params = figures.params(scenario);
  return params.empty() ? 0 : params.back();
}

std::string what_we_saw(const Seen& seen) {
  if (seen.scenarios == 0) return "not measured";
  std::string said =
      seen.double_grants == 0
          ? fmt::format("one holder in all {} faults", seen.scenarios)
          : fmt::format("two holders in {} of {} faults, at most for {}", seen.double_grants,
                        seen.scenarios, show(seen.worst_overlap_ms, "ms"));
  if (seen.contradictions > 0) said += fmt::format("; {} contradiction(s)", seen.contradictions);
  return said;
}

}  // namespace

std::vector<StoreRow> stores_of(const Figures& figures) {
  std::vector<StoreRow> rows;
  for (const auto& entry : figures.raw().at("stores").as_array()) {
    const auto& store = entry.as_object();
    if (store.contains("declared"))
      rows.push_back({text(store, "id"), text(store, "title"), &store});
  }
  return rows;
}

std::string title_of(const Figures& figures, std::string_view store) {
  for (const auto& entry : figures.raw().at("stores").as_array()) {
    if (entry.at("id").as_string() == store) return std::string(entry.at("title").as_string());
  }
  return std::string(store);
}

std::string strength(const object& declared) {
  return declared.at("token") == "time_seeded" ? "time-seeded" : text(declared, "token");
}

std::string promise(const object& description) {
  const auto& declared = description.at("declared").as_object();
  const bool exclusive = declared.at("guarantee") == "exclusive";
  return fmt::format("{}, {}, token {}", exclusive ? "exclusive" : "best effort",
                     declared.at("fair").as_bool() ? "first come first served" : "no order",
                     strength(declared));
}

Seen seen(const Figures& figures, std::string_view store) {
  Seen all;
  for (const auto& entry : figures.raw().at("results").as_array()) {
    const auto& result = entry.as_object();
    if (result.at("kind") != "safety" || result.at("store").as_string() != store) continue;
    const auto* values = result.if_contains("values");
    if (values == nullptr) continue;
    ++all.scenarios;
    const auto number = [&](const char* name) { return values->at(name).to_number<double>(); };
    if (number("double_grants") > 0) ++all.double_grants;
    all.worst_overlap_ms = std::max(all.worst_overlap_ms, number("overlap_ms"));
    all.stale_fenced += static_cast<int>(number("stale_writes_fenced"));
    all.contradictions += static_cast<int>(result.at("contradictions").as_array().size());
  }
  return all;
}

object overview(const Runs& runs) {
  array rows;
  for (const auto& run : runs) {
    const auto& figures = run.figures;
    const auto clients = last_param(figures, "speed.hand_over");
    for (const auto& store : stores_of(figures)) {
      const Seen found = seen(figures, store.id);
      array row;
      if (runs.size() > 1) row.push_back(cell(run.name));
      row.push_back(cell(store.title));
      row.push_back(cell(promise(*store.description)));
      row.push_back(cell(figure_with_ratio(figures, {"speed.uncontended", store.id, "dlock", 1},
                                           "pair_p50_us", "µs")));
      row.push_back(cell(figure_with_ratio(figures, {"speed.hand_over", store.id, "dlock", clients},
                                           "handover_p50_us", "µs")));
      const char* tone = found.contradictions > 0   ? "bad"
                         : found.scenarios == 0     ? ""
                         : found.double_grants == 0 ? "good"
                                                    : "warn";
      row.push_back(cell(what_we_saw(found), tone));
      rows.push_back(std::move(row));
    }
  }
  array headers{"Store", "It promises", "Lock and unlock", "Hand-over", "What we saw"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  object all = table(std::move(headers), std::move(rows));
  all["terminal"] = true;
  array blocks{
      words("What it costs, what it promises, what we saw. Costs are medians of dlock on "
            "this machine; the floor is the same lock written straight on the store's C "
            "client with the fewest round trips that its protocol allows, in the same "
            "run.")};
  array contradictions;
  for (const auto& run : runs) {
    for (const auto& entry : run.figures.raw().at("results").as_array()) {
      const auto& result = entry.as_object();
      const auto say = [&](const std::string& what) {
        contradictions.push_back(
            boost::json::string(fmt::format("{}, {}: {}", text(result, "scenario"),
                                            title_of(run.figures, text(result, "store")), what)));
      };
      if (const auto* found = result.if_contains("contradictions")) {
        for (const auto& one : found->as_array()) say(std::string(one.as_string()));
      }
      if (result.contains("failed")) say("could not be measured: " + text(result, "failed"));
    }
    if (run.figures.raw().at("interrupted").as_bool()) {
      blocks.push_back(callout("note", "This run was interrupted: figures are missing."));
    }
    for (const auto& one : run.figures.raw().at("missing").as_array()) {
      blocks.push_back(
          callout("note", fmt::format("{} was left out: {}", text(one.as_object(), "store"),
                                      text(one.as_object(), "why"))));
    }
  }
  blocks.push_back(std::move(all));
  if (!contradictions.empty()) {
    blocks.push_back(callout("bad",
                             "What was measured contradicts what is declared, or could not "
                             "be measured:"));
    blocks.push_back(
        object{{"kind", "list"}, {"items", std::move(contradictions)}, {"terminal", true}});
  }
  return section("overview", "At a glance", std::move(blocks));
}

object advice(const Runs& runs) {
  const auto& figures = runs.front().figures;
  const auto uses = boost::json::parse(embedded("report/advice.json")).as_array();
  array rows;
  for (const auto& use : uses) {
    std::string fitting;
    for (const auto& store : stores_of(figures)) {
      const auto& declared = store.description->at("declared").as_object();
      const auto wants = [&](const char* field) { return use.as_object().contains(field); };
      const bool fits =
          (!wants("guarantee") || declared.at("guarantee") == use.at("guarantee")) &&
          (!wants("fair") || declared.at("fair").as_bool()) &&
          (!wants("wake_up") || declared.at("wake_up") == use.at("wake_up")) &&
          (!wants("token") || declared.at("token") == use.at("token")) &&
          (!wants("family") || store.description->at("family") == use.at("family")) &&
          (!wants("not_family") || store.description->at("family") != use.at("not_family")) &&
          seen(figures, store.id).contradictions == 0;
      if (fits) fitting += (fitting.empty() ? "" : ", ") + store.title;
    }
    rows.push_back(array{cell(use.at("if").as_string()),
                         cell(fitting.empty() ? "none of those measured" : fitting),
                         cell(use.at("then").as_string())});
  }
  return section("advice", "Which one for what",
                 array{table(array{"If ...", "take", "because, and mind"}, std::move(rows))});
}

object method(const Runs& runs) {
  array blocks;
  for (const auto& run : runs) {
    const auto& raw = run.figures.raw();
    const auto& machine = raw.at("machine").as_object();
    array rows;
    const auto add = [&](const char* what, const std::string& value) {
      rows.push_back(array{cell(what), cell(value)});
    };
    if (runs.size() > 1) add("Run", run.name);
    add("Command", text(raw, "command"));
    add("Finished", fmt::format("{}, after {:.0f} s", text(raw, "finished"),
                                raw.at("seconds").to_number<double>()));
    add("dlock", text(raw, "dlock"));
    add("Processor", fmt::format("{}, {} cores, {:.1f} GB", text(machine, "processor"),
                                 machine.at("cores").to_number<int>(),
                                 machine.at("memory_gb").to_number<double>()));
    add("System", text(machine, "kernel"));
    add("Load average",
        fmt::format("{:.2f} before, {:.2f} after", machine.at("load_before").to_number<double>(),
                    machine.at("load_after").to_number<double>()));
    for (const auto& store : stores_of(run.figures)) {
      add(store.title.c_str(), fmt::format("{}; {}", text(*store.description, "version"),
                                           text(*store.description, "words")));
    }
    blocks.push_back(table(array{"What", "Which"}, std::move(rows)));
  }
  blocks.push_back(words(
      "Everything runs on one machine over loopback: compare the ratios and the order, not the "
      "microseconds, with your network. Ours, the floor and other clients take turns, in "
      "slices of half a second and less, and a ratio is the median of the slices' ratios. Where "
      "half the 95 % confidence interval of that median is more than 15 % of it, the figure is "
      "marked ~ with its spread. Latencies are kept in log-linear histograms of three digits."));
  return section("method", "How it was measured", std::move(blocks));
}

}  // namespace report

boost::json::object make_document(const std::vector<boost::json::object>& raws) {
  using namespace report;
  Runs runs;
  for (const auto& raw : raws) {
    runs.push_back({fmt::format("{} ({})", runs.empty() ? "first" : "second",
                                std::string(raw.at("finished").as_string()).substr(0, 16)),
                    Figures(raw)});
  }
  const auto& first = runs.front().figures;
  array sections{overview(runs), advice(runs), trade_offs(first)};
  add_speed(runs, sections);
  sections.push_back(slow_spots(first));
  add_safety(runs, sections);
  add_pitfalls(first, sections);
  if (runs.size() > 1) sections.push_back(repeatability(runs));
  sections.push_back(method(runs));
  return {
      {"title", "Which store should hold our locks?"},
      {"subtitle", fmt::format("dlock {} on {}, {}", first.raw().at("dlock").as_string().c_str(),
                               first.raw().at("machine").at("processor").as_string().c_str(),
                               first.raw().at("finished").as_string().c_str())},
      {"sections", std::move(sections)}};
}

std::string write_reports(const std::vector<boost::json::object>& runs,
                          const std::filesystem::path& out) {
  const auto document = make_document(runs);
  testkit::write_file(out / "report.md", to_markdown(document));
  testkit::write_file(out / "report.html", to_html(document));
  return to_terminal(document);
}

}  // namespace dlock::compare
