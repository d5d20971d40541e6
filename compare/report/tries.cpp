// SPDX-License-Identifier: Apache-2.0
#include "compare/report/tries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>

namespace dlock::compare {

namespace {

using boost::json::object;

std::optional<double> number(const object& result, const char* name) {
  const auto* values = result.if_contains("values");
  const auto* value = values == nullptr ? nullptr : values->as_object().if_contains(name);
  if (value == nullptr) return std::nullopt;
  return value->to_number<double>();
}

std::vector<std::string> list_of(const object& result, const char* name) {
  std::vector<std::string> texts;
  const auto* list = result.if_contains(name);
  if (list == nullptr) return texts;
  for (const auto& one : list->as_array()) texts.emplace_back(one.as_string());
  return texts;
}

std::string joined_once(const std::vector<std::string>& texts) {
  std::vector<std::string> seen;
  std::string all;
  for (const auto& one : texts) {
    if (std::find(seen.begin(), seen.end(), one) != seen.end()) continue;
    seen.push_back(one);
    all += (all.empty() ? "" : "; ") + one;
  }
  return all;
}

bool has_fault(const object& result) {
  const auto* events = result.if_contains("events");
  if (events == nullptr) return false;
  const auto& all = events->as_array();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& event) { return event.at("event") == "fault"; });
}

}  // namespace

std::size_t Tries::measured() const {
  return static_cast<std::size_t>(
      std::count_if(results_.begin(), results_.end(),
                    [](const auto* result) { return result->contains("values"); }));
}

std::size_t Tries::with_fault() const {
  return static_cast<std::size_t>(std::count_if(
      results_.begin(), results_.end(),
      [](const auto* result) { return result->contains("values") && has_fault(*result); }));
}

std::size_t Tries::with(const char* value) const {
  return static_cast<std::size_t>(
      std::count_if(results_.begin(), results_.end(),
                    [&](const auto* result) { return number(*result, value).value_or(0) > 0; }));
}

double Tries::sum(const char* value) const {
  double all = 0;
  for (const auto* result : results_) all += number(*result, value).value_or(0);
  return all;
}

double Tries::most(const char* value) const {
  double most = 0;
  for (const auto* result : results_) most = std::max(most, number(*result, value).value_or(0));
  return most;
}

std::optional<Tries::Median> Tries::median(const char* value) const {
  std::vector<double> all;
  for (const auto* result : results_) {
    if (const auto one = number(*result, value)) all.push_back(*one);
  }
  if (all.empty()) return std::nullopt;
  std::sort(all.begin(), all.end());
  return Median{(all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2, all.size()};
}

std::size_t Tries::with_texts(const char* list) const {
  return static_cast<std::size_t>(
      std::count_if(results_.begin(), results_.end(),
                    [&](const auto* result) { return !list_of(*result, list).empty(); }));
}

std::string Tries::texts(const char* list) const {
  std::vector<std::string> all;
  for (const auto* result : results_) {
    for (auto& one : list_of(*result, list)) all.push_back(std::move(one));
  }
  return joined_once(all);
}

std::string Tries::why_failed() const {
  std::vector<std::string> all;
  for (const auto* result : results_) {
    if (const auto* why = result->if_contains("failed")) all.emplace_back(why->as_string());
  }
  return joined_once(all);
}

std::string show_tries(std::size_t tries) {
  return tries == 1 ? "1 try" : fmt::format("{} tries", tries);
}

}  // namespace dlock::compare
