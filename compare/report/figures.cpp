// SPDX-License-Identifier: Apache-2.0
#include "compare/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

namespace dlock::compare {

namespace {

using boost::json::object;

std::optional<Figure> summary(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const auto high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  const double median = at(0.5);
  const bool few = values.size() < 4;
  const double width = few ? values.back() - values.front() : at(0.75) - at(0.25);
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

std::vector<double> Figures::values(const Spot& spot, std::string_view metric) const {
  std::vector<double> all;
  for (const auto* result : at(spot)) {
    const auto* values = result->if_contains("values");
    const auto* value = values == nullptr ? nullptr : values->as_object().if_contains(metric);
    if (value != nullptr) all.push_back(value->to_number<double>());
  }
  return all;
}

std::optional<Figure> Figures::figure(const Spot& spot, std::string_view metric) const {
  return summary(values(spot, metric));
}

std::optional<Figure> Figures::ratio(const Spot& spot, std::string_view to_driver,
                                     std::string_view metric) const {
  Spot other = spot;
  other.driver = to_driver;
  const auto ours = values(spot, metric);
  const auto theirs = values(other, metric);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (theirs[i] > 0) ratios.push_back(ours[i] / theirs[i]);
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
