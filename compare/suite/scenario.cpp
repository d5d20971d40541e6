// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "compare/embedded.hpp"
#include "compare/servers/store.hpp"
#include "compare/suite/samples.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

constexpr const char* kFiles[] = {"speed", "safety", "pitfalls"};

std::string text(const object& scenario, const char* field) {
  return std::string(scenario.at(field).as_string());
}

bool is_quick(const object& scenario) { return scenario.contains("quick"); }

template <class Work>
void for_each_scenario(Work&& work) {
  for (const auto* file : kFiles) {
    for (const auto& entry : scenarios(file)) work(entry.as_object());
  }
}

bool is_named_by(std::string_view word, std::string_view id) {
  return !word.empty() && id.starts_with(word);
}

/// What a depth takes of a scenario of speed.
std::string params_of(const object& scenario, const char* depth) {
  if (!scenario.contains("param_name")) return "yes";
  std::string all;
  for (const auto& param : scenario.at("params").at(depth).as_array()) {
    all += (all.empty() ? "" : ",") + std::to_string(param.to_number<int>());
  }
  return all;
}

std::string taken_at(const object& scenario, Depth depth) {
  if (depth == Depth::quick && !is_quick(scenario)) return "-";
  if (scenario.contains("metrics")) return params_of(scenario, to_string(depth));
  if (text(scenario, "id").starts_with("pitfalls.")) return "yes";
  return fmt::format("{} tries", samples_of(depth).tries);
}

std::string line_of(const std::string& id, const std::string& quick, const std::string& standard,
                    const std::string& full, const std::string& what) {
  return fmt::format("{:<28}{:<9}{:<11}{:<18}{}\n", id, quick, standard, full, what);
}

}  // namespace

boost::json::array scenarios(std::string_view file) {
  return boost::json::parse(embedded("scenarios/" + std::string(file) + ".json")).as_array();
}

bool is_wanted(const Options& options, const object& scenario) {
  if (options.scenarios.empty()) return options.depth != Depth::quick || is_quick(scenario);
  const auto id = text(scenario, "id");
  return std::any_of(options.scenarios.begin(), options.scenarios.end(),
                     [&](const std::string& word) { return is_named_by(word, id); });
}

std::vector<std::string> left_out(const Options& options) {
  std::vector<std::string> ids;
  if (options.depth != Depth::quick || !options.scenarios.empty()) return ids;
  for_each_scenario([&](const object& scenario) {
    if (!is_quick(scenario)) ids.push_back(text(scenario, "id"));
  });
  return ids;
}

std::string no_such(const char* what, std::string_view word,
                    const std::vector<std::string>& known) {
  const std::vector<std::string_view> words(known.begin(), known.end());
  const auto nearest = nearest_word(word, words);
  return fmt::format("there is no {} '{}'; {}there are: {}", what, word,
                     nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest),
                     fmt::join(known, ", "));
}

void check_names(const Options& options) {
  std::vector<std::string> known(std::begin(kFiles), std::end(kFiles)), stores;
  for_each_scenario([&](const object& scenario) { known.push_back(text(scenario, "id")); });
  const auto is_known = [&](const std::string& word) {
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& id) { return is_named_by(word, id); });
  };
  for (const auto& word : options.scenarios) {
    if (is_known(word)) continue;
    throw NothingToMeasure(no_such("scenario", word, known) +
                           "; 'dlock compare --list' says what they are");
  }
  for (const auto& kind : store_kinds()) stores.push_back(kind.id);
  for (const auto& word : options.stores) {
    if (std::find(stores.begin(), stores.end(), word) != stores.end()) continue;
    throw NothingToMeasure(no_such("store", word, stores));
  }
}

std::string scenario_list() {
  std::string list = line_of("scenario", "--quick", "(default)", "--full", "what");
  for_each_scenario([&](const object& scenario) {
    const auto name = scenario.contains("param_name")
                          ? fmt::format(" ({})", text(scenario, "param_name"))
                          : std::string();
    list += line_of(text(scenario, "id"), taken_at(scenario, Depth::quick),
                    taken_at(scenario, Depth::standard), taken_at(scenario, Depth::full),
                    text(scenario, "title") + name);
  });
  const auto slices = [](Depth depth) {
    return samples_of(depth).repeats * samples_of(depth).slices;
  };
  list += fmt::format(
      "\nA ratio of speed comes from {} samples (--quick), {} (default) or {} (--full); those of "
      "cost, holders and waiters from one for each repeat.\nWhat --scenarios names is taken at any "
      "depth: dlock compare --quick --scenarios pitfalls",
      slices(Depth::quick), slices(Depth::standard), slices(Depth::full));
  return list;
}

const char* to_string(Depth depth) {
  switch (depth) {
    case Depth::quick:
      return "quick";
    case Depth::standard:
      return "standard";
    case Depth::full:
      return "full";
  }
  return "standard";
}

}  // namespace dlock::compare
