// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>

#include "compare/embedded.hpp"
#include "compare/report/blocks.hpp"
#include "compare/report/report.hpp"
#include "compare/suite/busy.hpp"
#include "compare/suite/scenario.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {

namespace report {

namespace {

std::string text(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

/// A figure of dlock's with its ratio to the floor; both are medians of times.
object figure_with_ratio(const Figures& figures, const Spot& spot, std::string_view metric) {
  const auto ours = figures.figure(spot, metric);
  if (!ours) return cell("-");
  const auto ratio = figures.ratio(spot, "floor", metric);
  if (!ratio) return cell(with_samples(ours, "µs"));
  // One number of samples is enough where it is that of both.
  const auto figure =
      ours->samples == ratio->samples ? show(ours->value, "µs") : with_samples(ours, "µs");
  return cell(fmt::format("{}, {}", figure, show_ratio(*ratio, " floor")),
              tone_of(*ratio, Better::lower, figures.is_busy()));
}

std::int64_t last_param(const Figures& figures, std::string_view scenario) {
  const auto params = figures.params(scenario);
  return params.empty() ? 0 : params.back();
}

/// What contradicts, and what could not be measured.
array contradictions_of(const Runs& runs) {
  array all;
  for (const auto& run : runs) {
    const auto add = [&](const std::string& what) {
      all.push_back(boost::json::string((runs.size() > 1 ? run.name + ", " : "") + what));
    };
    for (const auto& entry : run.figures.raw().at("stores").as_array()) {
      const auto& store = entry.as_object();
      if (store.contains("failed")) {
        add(fmt::format("{} could not be measured: {}", text(store, "title"),
                        text(store, "failed")));
      }
    }
    for (const auto& entry : run.figures.raw().at("results").as_array()) {
      const auto& result = entry.as_object();
      const auto* repeat = result.if_contains("repeat");
      const auto driver = result.contains("driver") ? text(result, "driver") : std::string();
      const auto say = [&](const std::string& what) {
        add(fmt::format("{}, {}{}{}: {}", text(result, "scenario"),
                        title_of(run.figures, text(result, "store")),
                        driver.empty() || driver == "dlock" ? "" : ", " + driver,
                        repeat == nullptr
                            ? std::string()
                            : fmt::format(", no. {}", repeat->to_number<std::int64_t>() + 1),
                        what));
      };
      if (const auto* found = result.if_contains("contradictions")) {
        for (const auto& one : found->as_array()) say(std::string(one.as_string()));
      }
      if (result.contains("failed")) say("could not be measured: " + text(result, "failed"));
    }
  }
  return all;
}

/// What is missing from a run, and why.
void add_gaps(const Run& run, array& blocks) {
  const auto& raw = run.figures.raw();
  if (raw.at("interrupted").as_bool()) {
    blocks.push_back(
        on_terminal(callout("note", "This run was interrupted: figures are missing.")));
  }
  for (const auto& one : raw.at("missing").as_array()) {
    blocks.push_back(on_terminal(
        callout("note", fmt::format("{} was left out: {}", text(one.as_object(), "store"),
                                    text(one.as_object(), "why")))));
  }
  const auto* left_out = raw.if_contains("left_out");
  if (left_out == nullptr || left_out->as_array().empty()) return;
  std::string ids;
  for (const auto& id : left_out->as_array()) {
    ids += (ids.empty() ? "" : ", ") + std::string(id.as_string());
  }
  blocks.push_back(on_terminal(callout(
      "note", fmt::format("--quick left out {} scenarios: {}. To get them: dlock compare (all), or "
                          "dlock compare --quick --scenarios ID,...",
                          left_out->as_array().size(), ids))));
}

/// Sections that are made of one run only say of which.
void name_the_first(array& sections) {
  for (auto& entry : sections) {
    auto& section = entry.as_object();
    for (const char* id : {"advice", "trade-offs", "slow", "safety", "pitfalls"}) {
      if (section.at("id") != id) continue;
      auto& blocks = section.at("blocks").as_array();
      blocks.insert(blocks.begin(), callout("note", "Of the first run."));
    }
  }
}

/// Above everything else: why its figures are to be doubted.
array banners(const Runs& runs) {
  array all;
  for (const auto& run : runs) {
    std::string why;
    for (const auto& reason : reasons_to_doubt(run.figures.raw().at("machine").as_object())) {
      why += (why.empty() ? "" : "; ") + reason;
    }
    if (why.empty()) continue;
    all.push_back(boost::json::string(
        fmt::format("{}The machine was busy: {}. The figures hold for such a machine only, and no "
                    "ratio is called good or bad; repeat it on a quiet one.",
                    runs.size() > 1 ? run.name + ": " : "", why)));
  }
  return all;
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
  for (const auto& entry : scenarios("safety")) {
    const Tries tries(figures.results("safety", text(entry.as_object(), "id"), store));
    const auto with_fault = tries.with_fault();
    if (with_fault > 0) ++all.faults;
    all.tries += with_fault;
    all.acquisitions += static_cast<std::size_t>(tries.sum("grants"));
    all.two_holders += tries.with("double_grants");
    all.worst_overlap_ms = std::max(all.worst_overlap_ms, tries.most("overlap_ms"));
    all.contradictions += tries.with_texts("contradictions");
  }
  return all;
}

std::string show_seen(const Seen& seen) {
  if (seen.acquisitions == 0 && seen.contradictions == 0) return "not measured";
  const auto faults = seen.faults == 1 ? "1 fault" : fmt::format("{} faults", seen.faults);
  std::string said;
  if (seen.two_holders > 0) {
    said = fmt::format("two holders in {} of {}, at most for {} ({}, {} acquisitions)",
                       seen.two_holders, show_tries(seen.tries), show(seen.worst_overlap_ms, "ms"),
                       faults, seen.acquisitions);
  } else if (seen.tries == 0) {
    said = fmt::format("one holder in {} acquisitions; no fault was tried", seen.acquisitions);
  } else {
    said = fmt::format(
        "one holder in all {} ({}, {} acquisitions); two may still come in up to {:.0f} % "
        "of such",
        show_tries(seen.tries), faults, seen.acquisitions, at_most_percent(seen.tries));
  }
  if (seen.contradictions > 0) {
    said += fmt::format("; contradictions in {}", show_tries(seen.contradictions));
  }
  return said;
}

std::string_view tone_of_seen(const Seen& seen) {
  if (seen.contradictions > 0) return "bad";
  if (seen.two_holders > 0) return "warn";
  if (seen.acquisitions == 0) return "";
  return seen.tries >= kEnough ? "good" : "thin";
}

std::string with_samples(const std::optional<Figure>& figure, std::string_view unit) {
  if (!figure) return "-";
  return fmt::format("{} (n {})", show(figure->value, unit), show_count(figure->samples));
}

Better better_of(const object& metric) {
  return metric.at("better") == "lower" ? Better::lower : Better::higher;
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
      row.push_back(
          figure_with_ratio(figures, {"speed.uncontended", store.id, "dlock", 1}, "pair_p50_us"));
      row.push_back(figure_with_ratio(figures, {"speed.hand_over", store.id, "dlock", clients},
                                      "handover_p50_us"));
      row.push_back(cell(show_seen(found), tone_of_seen(found)));
      rows.push_back(std::move(row));
    }
  }
  array headers{"Store", "It promises", "Lock and unlock", "Hand-over", "What we saw"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  array blocks{
      words("What it costs, what it promises, what we saw. Costs are medians of dlock on "
            "this machine; the floor is the same lock written straight on the store's C "
            "client with the fewest round trips that its protocol allows, in the same "
            "run. n is the number of samples, in brackets the 95 % confidence interval of the "
            "median. A ratio is green or amber where the whole interval is on one side (below "
            "the floor, or more than half above it), and grey where fewer than 30 samples judge "
            "nothing. Of one holder in all tries: how often two may come all the same, by 95 %.")};
  for (const auto& run : runs) add_gaps(run, blocks);
  blocks.push_back(on_terminal(table(std::move(headers), std::move(rows))));
  auto contradictions = contradictions_of(runs);
  if (!contradictions.empty()) {
    blocks.push_back(callout("bad",
                             "What was measured contradicts what is declared, or could not "
                             "be measured:"));
    blocks.push_back(on_terminal(object{{"kind", "list"}, {"items", std::move(contradictions)}}));
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
      if (fits) fitting += (fitting.empty() ? "" : "; ") + store.title;  // titles have commas
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
    const auto* busy = machine.if_contains("busy");
    if (busy != nullptr && busy->as_object().contains("others_percent")) {
      const auto share = [&](const char* of) { return busy->at(of).to_number<double>(); };
      add("Other processes",
          fmt::format("{:.1f} % of all processors, {:.1f} % in the worst look of {}",
                      share("others_percent"), share("worst_others_percent"),
                      busy->at("looks").as_array().size()));
      add("Steal", fmt::format("{:.1f} %, {:.1f} % in the worst look", share("steal_percent"),
                               share("worst_steal_percent")));
    }
    for (const auto& store : stores_of(run.figures)) {
      add(store.title.c_str(), fmt::format("{}; {}", text(*store.description, "version"),
                                           text(*store.description, "words")));
    }
    blocks.push_back(table(array{"What", "Which"}, std::move(rows)));
  }
  blocks.push_back(words(
      "Everything runs on one machine over loopback: compare the ratios and the order, not the "
      "microseconds, with your network. Ours, the floor and other clients take turns, in "
      "slices of a fifth of a second and less, and a ratio is the median of the slices' ratios: "
      "each "
      "slice is a sample. Its interval is that of order statistics, 95 %, and wide enough for the "
      "median of each of the run's rounds, which are minutes apart; of fewer than 6 samples there "
      "is none. A percentile is told where, by 95 %, at least one value lies beyond it. Latencies "
      "are kept in log-linear histograms of three digits."));
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
  array sections{overview(runs)};
  if (runs.size() > 1) sections.push_back(repeatability(runs));
  sections.push_back(advice(runs));
  sections.push_back(trade_offs(first));
  add_speed(runs, sections);
  sections.push_back(slow_spots(first));
  add_safety(runs, sections);
  add_pitfalls(first, sections);
  if (runs.size() > 1) name_the_first(sections);
  sections.push_back(method(runs));
  return {
      {"title", "Which store should hold our locks?"},
      {"subtitle", fmt::format("dlock {} on {}, {}", first.raw().at("dlock").as_string().c_str(),
                               first.raw().at("machine").at("processor").as_string().c_str(),
                               first.raw().at("finished").as_string().c_str())},
      {"banners", banners(runs)},
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
