// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compare/report/blocks.hpp"
#include "compare/suite/scenario.hpp"

namespace dlock::compare::report {

namespace {

const object* headline(const object& scenario) {
  for (const auto& metric : scenario.at("metrics").as_array()) {
    if (metric.as_object().contains("ratio")) return &metric.as_object();
  }
  return nullptr;
}

/// Whether there is a floor to compare with.
bool has_floor(const object& scenario) { return !scenario.contains("no_floor"); }

const object& metric_of(const object& scenario, std::string_view id) {
  for (const auto& metric : scenario.at("metrics").as_array()) {
    if (metric.at("id").as_string() == id) return metric.as_object();
  }
  return scenario.at("metrics").at(0).as_object();
}

object ratio_cell(const Figures& figures, const object& metric,
                  const std::optional<Figure>& ratio) {
  if (!ratio) return cell("");
  return cell(show_ratio(*ratio), tone_of(*ratio, better_of(metric), figures.is_busy()));
}

/// Of a row: how many slices or repeats, and of how many locks they are.
object samples_cell(const Figures& figures, const Spot& spot, std::size_t samples) {
  for (const char* name : {"pair", "handover", "acquire"}) {
    if (const auto all = figures.histogram(spot, name)) {
      return cell(fmt::format("{} of {}", samples, show_count(all->count())));
    }
  }
  return cell(std::to_string(samples));
}

/// A figure; with its own number of samples where that is not the row's.
object figure_cell(const Figures& figures, const Spot& spot, const object& metric,
                   std::size_t of_row) {
  const auto figure = figures.measured(spot, metric);
  const auto unit = metric.at("unit").as_string();
  if (figure) {
    return cell(figure->samples == of_row || metric.contains("histogram")
                    ? show(figure->value, unit)
                    : with_samples(figure, unit));
  }
  const auto* name = metric.if_contains("histogram");
  const auto all = name == nullptr ? std::nullopt : figures.histogram(spot, name->as_string());
  if (!all) return cell("-");
  return cell(fmt::format("- (n {}: too few)", show_count(all->count())), "thin");
}

std::size_t samples_of_row(const Figures& figures, const object& scenario, const Spot& spot) {
  std::size_t most = 0;
  for (const auto& metric : scenario.at("metrics").as_array()) {
    const auto figure = figures.figure(spot, metric.at("id").as_string());
    if (figure) most = std::max(most, figure->samples);
  }
  return most;
}

array rows_of(const Run& run, const object& scenario, bool several_runs) {
  array rows;
  const auto& figures = run.figures;
  const auto id = text_at(scenario, "id");
  const auto* main = headline(scenario);
  for (const auto& store : stores_of(figures)) {
    for (const auto param : figures.params(id)) {
      for (const auto& driver : figures.drivers(id, store.id)) {
        const Spot spot{id, store.id, driver, param};
        const auto failure = figures.failure(spot);
        const auto samples = samples_of_row(figures, scenario, spot);
        if (samples == 0 && failure.empty()) continue;
        array row;
        if (several_runs) row.push_back(cell(run.name));
        row.push_back(cell(store.title));
        if (scenario.contains("param_name")) row.push_back(cell(std::to_string(param)));
        row.push_back(cell(driver));
        for (const auto& metric : scenario.at("metrics").as_array()) {
          row.push_back(figure_cell(figures, spot, metric.as_object(), samples));
        }
        row.push_back(samples_cell(figures, spot, samples));
        if (main != nullptr && has_floor(scenario)) {
          const auto ratio = figures.ratio(spot, "floor", main->at("id").as_string());
          row.push_back(driver == "floor" ? cell("1") : ratio_cell(figures, *main, ratio));
        }
        if (!failure.empty()) row.back() = cell(failure, "bad");
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

/// ", n 30"; how many samples the figures of a chart have.
class SampleRange {
 public:
  void add(const std::optional<Figure>& figure) {
    if (!figure) return;
    least_ = least_ == 0 ? figure->samples : std::min(least_, figure->samples);
    most_ = std::max(most_, figure->samples);
  }
  std::string words() const {
    if (most_ == 0) return {};
    return least_ == most_ ? fmt::format(", n {}", show_count(most_))
                           : fmt::format(", n {} to {}", show_count(least_), show_count(most_));
  }

 private:
  std::size_t least_ = 0;
  std::size_t most_ = 0;
};

/// A gap in the chart where nothing was measured.
boost::json::value value_at(const Figures& figures, const Spot& spot, const object& metric,
                            SampleRange& samples) {
  const auto figure = figures.measured(spot, metric);
  samples.add(figure);
  return figure ? boost::json::value(figure->value) : boost::json::value(nullptr);
}

object bar_chart(const Figures& figures, const object& scenario, const object& metric) {
  const auto id = text_at(scenario, "id");
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
  SampleRange samples;
  for (const auto& driver : drivers) {
    array data;
    for (const auto& store : stores_of(figures)) {
      data.push_back(value_at(figures, {id, store.id, driver, param}, metric, samples));
    }
    sets.push_back(object{{"label", driver}, {"data", std::move(data)}});
  }
  std::string title = text_at(metric, "title");
  if (scenario.contains("param_name")) {
    title += fmt::format(", {} {}", param, text_at(scenario, "param_name"));
  }
  title += samples.words();
  // Quantities that differ by powers of ten between stores, and those that do not.
  const bool wide = metric.at("unit") == "µs" || metric.at("unit") == "/s";
  return {{"kind", "chart"},           {"type", "bar"}, {"title", title},
          {"unit", metric.at("unit")}, {"log", wide},   {"labels", std::move(labels)},
          {"sets", std::move(sets)}};
}

object line_chart(const Figures& figures, const object& scenario, const object& metric) {
  const auto id = text_at(scenario, "id");
  array labels, sets;
  SampleRange samples;
  for (const auto param : figures.params(id)) labels.push_back(param);
  for (const auto& store : stores_of(figures)) {
    for (const char* driver : {"dlock", "floor"}) {
      array data;
      for (const auto param : figures.params(id)) {
        data.push_back(value_at(figures, {id, store.id, driver, param}, metric, samples));
      }
      sets.push_back(object{{"label", store.title},
                            {"dashed", std::string_view(driver) == "floor"},
                            {"data", std::move(data)}});
    }
  }
  return {{"kind", "chart"},
          {"type", "line"},
          {"title", text_at(metric, "title") + " (dashed: the floor)" + samples.words()},
          {"unit", metric.at("unit")},
          {"x", text_at(scenario, "param_name")},
          {"log", true},
          {"labels", std::move(labels)},
          {"sets", std::move(sets)}};
}

/// Latency by percentile, in the way of HdrHistogram's plots: each step halves what is left.
object percentile_chart(const Figures& figures, const object& scenario, std::string_view name) {
  const auto id = text_at(scenario, "id");
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
    for (const double percent : percents) {
      // Beyond what so many values can tell the line ends.
      data.push_back(enough_for(percent, all->count())
                         ? boost::json::value(all->percentile_ns(percent) / 1000)
                         : boost::json::value(nullptr));
    }
    sets.push_back(
        object{{"label", fmt::format("{} (n {})", store.title, show_count(all->count()))},
               {"data", std::move(data)}});
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
  array blocks{words(text_at(scenario, "words"))};
  for (const auto& entry : scenario.at("charts").as_array()) {
    const auto& chart = entry.as_object();
    const auto& figures = runs.front().figures;
    const auto type = text_at(chart, "type");
    object made = type == "percentiles"
                      ? percentile_chart(figures, scenario, text_at(chart, "histogram"))
                  : type == "line" && figures.params(text_at(scenario, "id")).size() > 1
                      ? line_chart(figures, scenario, metric_of(scenario, text_at(chart, "metric")))
                      : bar_chart(figures, scenario, metric_of(scenario, text_at(chart, "metric")));
    if (!made.at("sets").as_array().empty()) blocks.push_back(std::move(made));
  }
  array headers{"Store"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  if (scenario.contains("param_name")) {
    headers.push_back(boost::json::string(text_at(scenario, "param_name")));
  }
  headers.push_back("Client");
  for (const auto& metric : scenario.at("metrics").as_array())
    headers.push_back(metric.at("title"));
  headers.push_back("Samples, of how many locks");
  if (const auto* main = headline(scenario); main != nullptr && has_floor(scenario)) {
    headers.push_back(
        boost::json::string(main->at("better") == "lower" ? "times the floor" : "of the floor"));
  }
  array rows;
  for (const auto& run : runs) {
    for (auto& row : rows_of(run, scenario, runs.size() > 1)) rows.push_back(std::move(row));
  }
  blocks.push_back(table(std::move(headers), std::move(rows)));
  return section(text_at(scenario, "id"), text_at(scenario, "title"), std::move(blocks));
}

}  // namespace

void add_speed(const Runs& runs, array& sections) {
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const bool measured = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      return !run.figures.results("speed", text_at(scenario, "id")).empty();
    });
    if (measured) sections.push_back(speed_section(runs, scenario));
  }
}

object slow_spots(const Figures& figures) {
  array rows;
  std::size_t unjudged = 0;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const auto* main = headline(scenario);
    if (main == nullptr) continue;
    const auto id = text_at(scenario, "id");
    const auto metric = text_at(*main, "id");
    for (const auto& store : stores_of(figures)) {
      for (const auto param : figures.params(id)) {
        for (const auto& driver : figures.drivers(id, store.id)) {
          if (driver.starts_with("dlock")) continue;  // ours, however configured
          const Spot spot{id, store.id, "dlock", param};
          const auto ratio = figures.ratio(spot, driver, metric);
          if (!ratio) continue;
          if (!ratio->is_enough()) ++unjudged;
          if (!is_worse(*ratio, better_of(*main), driver == "floor" ? 1.25 : 1.05)) continue;
          const auto unit = text_at(*main, "unit");
          rows.push_back(
              array{cell(store.title),
                    cell(text_at(scenario, "title") +
                         (scenario.contains("param_name")
                              ? fmt::format(", {} {}", param, text_at(scenario, "param_name"))
                              : "")),
                    cell(with_samples(figures.figure(spot, metric), unit)),
                    cell(fmt::format(
                        "{}: {}", driver,
                        with_samples(figures.figure({id, store.id, driver, param}, metric), unit))),
                    ratio_cell(figures, *main, ratio)});
        }
      }
    }
  }
  array blocks{words(
      "Where dlock is more than a quarter off the floor, or behind another client that was "
      "measured, with the whole interval. "
      "The floor has no queue, no renewal, no told loss and (hand-over on Redis) no lease; what "
      "dlock "
      "adds is a hop from the caller's thread to the loop and back, and the requests that keep its "
      "promises.")};
  if (rows.empty()) {
    blocks.push_back(callout("note", "Nowhere that this run can show."));
  } else {
    blocks.push_back(
        table(array{"Store", "Scenario", "dlock", "against", "ratio"}, std::move(rows)));
  }
  if (unjudged > 0) {
    blocks.push_back(
        callout("note", fmt::format("{} ratio(s) come from too few samples to judge.", unjudged)));
  }
  return section("slow", "Where dlock itself is slow", std::move(blocks));
}

namespace {

object difference_cell(Difference found) {
  if (found == Difference::differs) return cell("differ: outside both intervals", "warn");
  return found == Difference::none_shown ? cell("no difference shown")
                                         : cell("too few samples to tell", "thin");
}

}  // namespace

object repeatability(const Runs& runs) {
  std::map<Difference, int> counts;
  array rows;
  const auto& first = runs.at(0).figures;
  const auto& second = runs.at(1).figures;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    const auto* main = headline(scenario);
    if (main == nullptr) continue;
    const auto id = text_at(scenario, "id");
    for (const auto& store : stores_of(first)) {
      for (const auto param : first.params(id)) {
        const Spot spot{id, store.id, "dlock", param};
        const auto one = first.ratio(spot, "floor", text_at(*main, "id"));
        const auto other = second.ratio(spot, "floor", text_at(*main, "id"));
        if (!one || !other) continue;
        const auto found = difference(*one, *other);
        ++counts[found];
        rows.push_back(array{cell(store.title),
                             cell(fmt::format("{}, {}", text_at(scenario, "title"), param)),
                             ratio_cell(first, *main, one), ratio_cell(second, *main, other),
                             difference_cell(found)});
      }
    }
  }
  array blocks{
      on_terminal(callout(
          "note",
          fmt::format("Of {} ratios to the floor that both runs have, {} differ: their 95 % "
                      "intervals do not meet. {} show no difference, and {} come from too "
                      "few samples to tell.",
                      rows.size(), counts[Difference::differs], counts[Difference::none_shown],
                      counts[Difference::too_few]))),
      table(array{"Store", "Scenario", "first", "second", "they"}, std::move(rows))};
  return section("repeat", "The two runs side by side", std::move(blocks));
}

}  // namespace dlock::compare::report
