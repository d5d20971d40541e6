// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/scenario.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <stdexcept>

#include "compare/embedded.hpp"

namespace dlock::compare {

boost::json::array scenarios(std::string_view file) {
  return boost::json::parse(embedded("scenarios/" + std::string(file) + ".json")).as_array();
}

bool is_wanted(const Options& options, std::string_view scenario) {
  if (options.scenarios.empty()) return true;
  return std::any_of(options.scenarios.begin(), options.scenarios.end(),
                     [&](const std::string& wanted) { return scenario.starts_with(wanted); });
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
