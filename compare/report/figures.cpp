// SPDX-License-Identifier: Apache-2.0
#include "compare/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

namespace dlock::compare {

namespace {

using boost::json::object;

/// How many of `count` sorted values lie outside the 95 % confidence interval of their median, on
/// each side: whatever they are distributed like, as many heads or fewer come in `count` throws of
/// a coin with 2.5 % at most (order statistics).
std::size_t outside_interval(std::size_t count) {
  double chance = std::pow(0.5, static_cast<double>(count));  // of `outside` heads
  double sum = 0;
  for (std::size_t outside = 0;; ++outside) {
    sum += chance;
    if (sum > 0.025) return outside == 0 ? 0 : outside - 1;
    chance *= static_cast<double>(count - outside) / static_cast<double>(outside + 1);
  }
}

std::optional<Figure> summary(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto count = values.size();
  const double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
  const auto outside = outside_interval(count);
  const double width = values[count - 1 - outside] - values[outside];
  return Figure{median, median == 0 ? 0 : width / 2 / std::abs(median)};
}

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

std::map<std::int64_t, double> Figures::by_repeat(const Spot& spot, std::string_view metric) const {
  std::map<std::int64_t, double> all;
  for (const auto* result : at(spot)) {
    const auto* values = result->if_contains("values");
    const auto* value = values == nullptr ? nullptr : values->as_object().if_contains(metric);
    if (value == nullptr) continue;
    all.emplace(result->at("repeat").to_number<std::int64_t>(), value->to_number<double>());
  }
  return all;
}

std::optional<Figure> Figures::figure(const Spot& spot, std::string_view metric) const {
  std::vector<double> values;
  for (const auto& [repeat, value] : by_repeat(spot, metric)) values.push_back(value);
  return summary(std::move(values));
}

std::optional<Figure> Figures::ratio(const Spot& spot, std::string_view to_driver,
                                     std::string_view metric) const {
  Spot other = spot;
  other.driver = to_driver;
  const auto ours = by_repeat(spot, metric);
  const auto theirs = by_repeat(other, metric);
  std::vector<double> ratios;
  for (const auto& [repeat, value] : ours) {
    const auto found = theirs.find(repeat);
    if (found != theirs.end() && found->second > 0) ratios.push_back(value / found->second);
  }
  return summary(std::move(ratios));
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

std::string show(double value, std::string_view unit) {
  if (unit == "µs" && value >= 1'000'000) return fmt::format("{:.2f} s", value / 1e6);
  if (unit == "µs" && value >= 1000) return fmt::format("{:.2f} ms", value / 1000);
  if (unit == "ms" && value >= 1000) return fmt::format("{:.2f} s", value / 1000);
  const std::string suffix = unit.empty() ? "" : unit == "/s" ? "/s" : fmt::format(" {}", unit);
  if (value >= 1000) {
    std::string digits = fmt::format("{:.0f}", value);
    for (auto at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits + suffix;
  }
  if (value >= 100) return fmt::format("{:.0f}{}", value, suffix);
  if (value >= 10) return fmt::format("{:.1f}{}", value, suffix);
  if (value == std::floor(value)) return fmt::format("{:.0f}{}", value, suffix);
  return fmt::format("{:.2f}{}", value, suffix);
}

}  // namespace dlock::compare
