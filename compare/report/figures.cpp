// SPDX-License-Identifier: Apache-2.0
#include "compare/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "compare/suite/busy.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

template <class Value>
void add_once(std::vector<Value>& all, Value value) {
  if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
}

bool is(const object& result, const char* field, std::string_view value) {
  const auto* found = result.if_contains(field);
  return found != nullptr && found->as_string() == value;
}

}  // namespace

std::vector<const object*> Figures::results(std::string_view kind, std::string_view scenario,
                                            std::string_view store) const {
  std::vector<const object*> found;
  for (const auto& entry : raw_.at("results").as_array()) {
    const auto& result = entry.as_object();
    if (is(result, "kind", kind) && is(result, "scenario", scenario) &&
        (store.empty() || is(result, "store", store))) {
      found.push_back(&result);
    }
  }
  return found;
}

std::vector<const object*> Figures::at(const Spot& spot) const {
  std::vector<const object*> found;
  for (const auto* result : results("speed", spot.scenario, spot.store)) {
    if (is(*result, "driver", spot.driver) && result->at("param") == spot.param) {
      found.push_back(result);
    }
  }
  return found;
}

std::map<std::int64_t, Sample> Figures::by_repeat(const Spot& spot, std::string_view metric) const {
  std::map<std::int64_t, Sample> all;
  for (const auto* result : at(spot)) {
    const auto* values = result->if_contains("values");
    const auto* value = values == nullptr ? nullptr : values->as_object().if_contains(metric);
    if (value == nullptr) continue;
    const auto* round = result->if_contains("round");
    all.emplace(result->at("repeat").to_number<std::int64_t>(),
                Sample{value->to_number<double>(),
                       round == nullptr ? 0 : round->to_number<std::int64_t>()});
  }
  return all;
}

std::optional<Figure> Figures::figure(const Spot& spot, std::string_view metric) const {
  std::vector<Sample> samples;
  for (const auto& [repeat, sample] : by_repeat(spot, metric)) samples.push_back(sample);
  return summary(samples);
}

std::optional<Figure> Figures::measured(const Spot& spot, const object& metric) const {
  if (!metric.contains("histogram")) return figure(spot, metric.at("id").as_string());
  const auto all = histogram(spot, metric.at("histogram").as_string());
  const auto percent = metric.at("percent").to_number<double>();
  if (!all || !enough_for(percent, all->count())) return std::nullopt;
  const double us = all->percentile_ns(percent) / 1000;
  return Figure{us, us, us, all->count()};
}

bool Figures::is_busy() const { return !reasons_to_doubt(raw_.at("machine").as_object()).empty(); }

std::optional<Figure> Figures::ratio(const Spot& spot, std::string_view to_driver,
                                     std::string_view metric) const {
  Spot other = spot;
  other.driver = to_driver;
  const auto ours = by_repeat(spot, metric);
  const auto theirs = by_repeat(other, metric);
  std::vector<Sample> ratios;
  for (const auto& [repeat, sample] : ours) {
    const auto found = theirs.find(repeat);
    if (found == theirs.end() || found->second.value <= 0) continue;
    ratios.push_back({sample.value / found->second.value, sample.round});
  }
  return summary(ratios);
}

std::optional<Histogram> Figures::histogram(const Spot& spot, std::string_view name) const {
  std::optional<Histogram> all;
  for (const auto* result : at(spot)) {
    const auto* one = result->if_contains(name);
    if (one == nullptr) continue;
    if (!all) all.emplace();
    all->add(Histogram::from_json(*one));
  }
  return all;
}

std::string Figures::failure(const Spot& spot) const {
  for (const auto* result : at(spot)) {
    if (const auto* why = result->if_contains("failed")) return std::string(why->as_string());
  }
  return {};
}

std::vector<std::int64_t> Figures::params(std::string_view scenario) const {
  std::vector<std::int64_t> all;
  for (const auto* result : results("speed", scenario)) {
    add_once(all, result->at("param").to_number<std::int64_t>());
  }
  return all;
}

std::vector<std::string> Figures::drivers(std::string_view scenario, std::string_view store) const {
  std::vector<std::string> all;
  for (const auto* result : results("speed", scenario, store)) {
    add_once(all, std::string(result->at("driver").as_string()));
  }
  return all;
}

std::string show_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string show(double value, std::string_view unit) {
  if (unit == "µs" && value >= 1'000'000) return fmt::format("{:.2f} s", value / 1e6);
  if (unit == "µs" && value >= 1000) return fmt::format("{:.2f} ms", value / 1000);
  if (unit == "ms" && value >= 1000) return fmt::format("{:.2f} s", value / 1000);
  const std::string suffix = unit.empty() ? "" : unit == "/s" ? "/s" : fmt::format(" {}", unit);
  if (value >= 1000) return show_count(static_cast<std::uint64_t>(std::llround(value))) + suffix;
  if (value >= 100) return fmt::format("{:.0f}{}", value, suffix);
  if (value >= 10) return fmt::format("{:.1f}{}", value, suffix);
  if (value == std::floor(value)) return fmt::format("{:.0f}{}", value, suffix);
  return fmt::format("{:.2f}{}", value, suffix);
}

}  // namespace dlock::compare
