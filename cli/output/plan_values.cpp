// SPDX-License-Identifier: Apache-2.0
#include "cli/output/plan_values.hpp"

#include <chrono>

#include "dlock/duration.hpp"

namespace dlock::cli {

boost::json::array array_of(const std::vector<std::string>& texts) {
  boost::json::array array;
  for (const auto& text : texts) array.emplace_back(text);
  return array;
}

std::string age_text(std::int64_t milliseconds) {
  return format_duration(
      std::chrono::milliseconds(milliseconds < 10'000 ? milliseconds : milliseconds / 1000 * 1000));
}

}  // namespace dlock::cli
