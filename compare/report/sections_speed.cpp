// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/report/blocks.hpp"
#include "compare/suite/scenario.hpp"

namespace dlock::compare::report {

namespace {

std::string text(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

const object* headline(const object& scenario) {
  for (const auto& metric : scenario.at("metrics").as_array()) {
    if (metric.as_object().contains("ratio")) return &metric.as_object();
  }
  return nullptr;
}

const object& metric_of(const object& scenario, std::string_view id) {
  for (const auto& metric : scenario.at("metrics").as_array()) {
    if (metric.at("id").as_string() == id) return metric.as_object();
  }
  return scenario.at("metrics").at(0).as_object();
}

/// More than one is worse than the floor: as factor of time, or as share of the floor's rate.
bool is_worse(const object& metric, double ratio, double by) {
  return metric.at("better") == "lower" ? ratio > by : ratio < 1 / by;
}

object ratio_cell(const object& metric, const std::optional<Figure>& ratio) {
  if (!ratio) return cell("");
  auto said = fmt::format("{:.2f} ×", ratio->value);
  if (ratio->noisy()) said += fmt::format(" ~{:.0f} %", ratio->spread * 100);
  return cell(said, is_worse(metric, ratio->value, 1.5)   ? "warn"
                    : is_worse(metric, ratio->value, 1.0) ? ""
                                                          : "good");
}

array rows_of(const Run& run, const object& scenario, bool several_runs) {
  array rows;
  const auto id = text(scenario, "id");
  const auto* main = headline(scenario);
  for (const auto& store : stores_of(run.figures)) {
    for (const auto param : run.figures.params(id)) {
      for (const auto& driver : run.figures.drivers(id, store.id)) {
        const Spot spot{id, store.id, driver, param};
        array row;
        if (several_runs) row.push_back(cell(run.name));
        row.push_back(cell(store.title));
        if (scenario.contains("param_name")) row.push_back(cell(std::to_string(param)));
        row.push_back(cell(driver));
        bool any = false;
        for (const auto& metric : scenario.at("metrics").as_array()) {
          const auto figure = run.figures.figure(spot, metric.at("id").as_string());
          any = any || figure;
          row.push_back(cell(figure ? show(figure->value, metric.at("unit").as_string()) : "-"));
        }
        const auto failure = run.figures.failure(spot);
        if (main != nullptr) {
          row.push_back(driver == "floor"
                            ? cell("1")
                            : ratio_cell(*main, run.figures.ratio(spot, "floor",
                                                                  main->at("id").as_string())));
        }
        if (!failure.empty()) row.back() = cell(failure, "bad");
        if (any || !failure.empty()) rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

/// A gap in the chart where nothing was measured.
boost::json::value value_at(const Figures& figures, const Spot& spot, const object& metric) {
  const auto figure = figures.figure(spot, metric.at("id").as_string());
  return figure ? boost::json::value(figure->value) : boost::json::value(nullptr);
}

object bar_chart(const Figures& figures, const object& scenario, const object& metric) {
  const auto id = text(scenario, "id");
  const auto params = figures.params(id);
  const auto param = params.empty() ? 0 : params.back();
  array labels;
  std::vector<std::string> drivers;
  for (const auto& store : stores_of(figures)) {
    labels.push_back(boost::json::string(store.title));
    for (auto& driver : figures.drivers(id, store.id)) {
      if (std::find(drivers.begin(), drivers.end(), driver) == drivers.end()) {
        drivers.push_back(driver);
      }
    }
  }
  array sets;
  for (const auto& driver : drivers) {
    array data;
    for (const auto& store : stores_of(figures)) {
      data.push_back(value_at(figures, {id, store.id, driver, param}, metric));
    }
    sets.push_back(object{{"label", driver}, {"data", std::move(data)}});
  }
  std::string title = text(metric, "title");
  if (scenario.contains("param_name")) {
    title += fmt::format(", {} {}", param, text(scenario, "param_name"));
  }
  // Quantities that differ by powers of ten between stores, and those that do not.
  const bool wide = metric.at("unit") == "µs" || metric.at("unit") == "/s";
  return {{"kind", "chart"},           {"type", "bar"}, {"title", title},
          {"unit", metric.at("unit")}, {"log", wide},   {"labels", std::move(labels)},
          {"sets", std::move(sets)}};
}

object line_chart(const Figures& figures, const object& scenario, const object& metric) {
  const auto id = text(scenario, "id");
  array labels, sets;
  for (const auto param : figures.params(id)) labels.push_back(param);
  for (const auto& store : stores_of(figures)) {
    for (const char* driver : {"dlock", "floor"}) {
      array data;
      for (const auto param : figures.params(id)) {
        data.push_back(value_at(figures, {id, store.id, driver, param}, metric));
      }
      sets.push_back(object{{"label", store.title},
                            {"dashed", std::string_view(driver) == "floor"},
                            {"data", std::move(data)}});
    }
  }
  return {{"kind", "chart"},
          {"type", "line"},
          {"title", text(metric, "title") + " (dashed: the floor)"},
          {"unit", metric.at("unit")},
          {"x", text(scenario, "param_name")},
          {"log", true},
          {"labels", std::move(labels)},
          {"sets", std::move(sets)}};
}

/// Latency by percentile, in the way of HdrHistogram's plots: each step halves what is left.
object percentile_chart(const Figures& figures, const object& scenario, std::string_view name) {
  const auto id = text(scenario, "id");
  const auto params = figures.params(id);
  array labels, sets;
  const std::vector<double> percents{0, 50, 75, 90, 95, 99, 99.5, 99.9};
  for (const double percent : percents)
    labels.push_back(boost::json::string(fmt::format("{}", percent)));
  for (const auto& store : stores_of(figures)) {
    const auto all =
        figures.histogram({id, store.id, "dlock", params.empty() ? 0 : params.front()}, name);
    if (!all || all->count() == 0) continue;
    array data;
    for (const double percent : percents) data.push_back(all->percentile_ns(percent) / 1000);
    sets.push_back(object{{"label", store.title}, {"data", std::move(data)}});
  }
  return {{"kind", "chart"},
          {"type", "line"},
          {"title", "dlock's latency by percentile"},
          {"unit", "µs"},
          {"x", "percent of all within"},
          {"log", true},
          {"labels", std::move(labels)},
          {"sets", std::move(sets)}};
}

object speed_section(const Runs& runs, const object& scenario) {
  array blocks{words(text(scenario, "words"))};
  for (const auto& entry : scenario.at("charts").as_array()) {
    const auto& chart = entry.as_object();
    const auto& figures = runs.front().figures;
    const auto type = text(chart, "type");
    object made = type == "percentiles"
                      ? percentile_chart(figures, scenario, text(chart, "histogram"))
                  : type == "line" && figures.params(text(scenario, "id")).size() > 1
                      ? line_chart(figures, scenario, metric_of(scenario, text(chart, "metric")))
                      : bar_chart(figures, scenario, metric_of(scenario, text(chart, "metric")));
    if (!made.at("sets").as_array().empty()) blocks.push_back(std::move(made));
  }
  array headers{"Store"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  if (scenario.contains("param_name")) {
    headers.push_back(boost::json::string(text(scenario, "param_name")));
  }
  headers.push_back("Client");
  for (const auto& metric : scenario.at("metrics").as_array())
    headers.push_back(metric.at("title"));
  if (const auto* main = headline(scenario)) {
    headers.push_back(
        boost::json::string(main->at("better") == "lower" ? "times the floor" : "of the floor"));
  }
  array rows;
  for (const auto& run : runs) {
    for (auto& row : rows_of(run, scenario, runs.size() > 1)) rows.push_back(std::move(row));
  }
  blocks.push_back(table(std::move(headers), std::move(rows)));
  return section(text(scenario, "id"), text(scenario, "title"), std::move(blocks));
}

std::string noise_of(const Figure& one, const Figure& other) {
  return fmt::format("noisy: ±{:.0f} % and ±{:.0f} %", one.spread * 100, other.spread * 100);
}

}  // namespace

void add_speed(const Runs& runs, array& sections) {
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const bool measured = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      return !run.figures.results("speed", text(scenario, "id")).empty();
    });
    if (measured) sections.push_back(speed_section(runs, scenario));
  }
}

object slow_spots(const Figures& figures) {
  array rows;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const auto* main = headline(scenario);
    if (main == nullptr) continue;
    const auto id = text(scenario, "id");
    const auto metric = text(*main, "id");
    for (const auto& store : stores_of(figures)) {
      for (const auto param : figures.params(id)) {
        for (const auto& driver : figures.drivers(id, store.id)) {
          if (driver == "dlock") continue;
          const Spot spot{id, store.id, "dlock", param};
          const auto ratio = figures.ratio(spot, driver, metric);
          if (!ratio || !is_worse(*main, ratio->value, driver == "floor" ? 1.25 : 1.05)) continue;
          const auto ours = figures.figure(spot, metric);
          const auto theirs = figures.figure({id, store.id, driver, param}, metric);
          const auto unit = text(*main, "unit");
          rows.push_back(
              array{cell(store.title),
                    cell(text(scenario, "title") +
                         (scenario.contains("param_name")
                              ? fmt::format(", {} {}", param, text(scenario, "param_name"))
                              : "")),
                    cell(show(ours->value, unit)),
                    cell(fmt::format("{}: {}", driver, show(theirs->value, unit))),
                    ratio_cell(*main, ratio)});
        }
      }
    }
  }
  array blocks{words(
      "Where dlock is more than a quarter off the floor, or behind another client that was "
      "measured. "
      "The floor has no queue, no renewal, no told loss and (hand-over on Redis) no lease; what "
      "dlock "
      "adds is a hop from the caller's thread to the loop and back, and the requests that keep its "
      "promises.")};
  if (rows.empty()) {
    blocks.push_back(callout("good", "Nowhere in this run."));
  } else {
    blocks.push_back(
        table(array{"Store", "Scenario", "dlock", "against", "ratio"}, std::move(rows)));
  }
  return section("slow", "Where dlock itself is slow", std::move(blocks));
}

object repeatability(const Runs& runs) {
  int all = 0, close = 0;
  array rows;
  const auto& first = runs.at(0).figures;
  const auto& second = runs.at(1).figures;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const auto* main = headline(scenario);
    if (main == nullptr) continue;
    const auto id = text(scenario, "id");
    for (const auto& store : stores_of(first)) {
      for (const auto param : first.params(id)) {
        const Spot spot{id, store.id, "dlock", param};
        const auto one = first.ratio(spot, "floor", text(*main, "id"));
        const auto other = second.ratio(spot, "floor", text(*main, "id"));
        if (!one || !other || one->value == 0) continue;
        const double apart = std::abs(other->value - one->value) / one->value;
        const bool is_close = apart < 0.15;
        ++all;
        if (is_close) ++close;
        rows.push_back(array{cell(store.title),
                             cell(fmt::format("{}, {}", text(scenario, "title"), param)),
                             ratio_cell(*main, one), ratio_cell(*main, other),
                             cell(fmt::format("{:.0f} %", apart * 100), is_close ? "good" : "warn"),
                             is_close ? cell("") : cell(noise_of(*one, *other), "warn")});
      }
    }
  }
  array blocks{
      callout(close * 10 >= all * 9 ? "good" : "note",
              fmt::format("{} of {} ratios to the floor differ by less than 15 %. The others are "
                          "noisy: the spread of the repeats within each run stands beside them.",
                          close, all)),
      table(array{"Store", "Scenario", "first", "second", "apart", "noisy"}, std::move(rows))};
  return section("repeat", "The two runs side by side", std::move(blocks));
}

}  // namespace dlock::compare::report
