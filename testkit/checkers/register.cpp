// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/register.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::checkers {

Violations check_register(const std::vector<Write>& writes) {
  Violations found;
  std::uint64_t highest = 0;
  std::map<std::uint64_t, GrantId> writers;
  TimePoint last{};
  for (const auto& write : writes) {
    const auto complain = [&](const std::string& what) {
      found.push_back(
          {fmt::format("write of grant {} with token {} {}", write.grant, write.token, what),
           write.at});
    };
    if (write.at < last) complain("comes after a later one");
    last = std::max(last, write.at);
    if (write.accepted && write.token < highest) {
      complain(fmt::format("was accepted after token {}", highest));
    }
    if (!write.accepted && write.token >= highest) {
      complain(fmt::format("was refused, though the highest before was {}", highest));
    }
    const auto [writer, first] = writers.emplace(write.token, write.grant);
    if (!first && writer->second != write.grant) {
      complain(fmt::format("has the token of grant {}", writer->second));
    }
    if (write.accepted) highest = std::max(highest, write.token);
  }
  return found;
}

}  // namespace dlock::checkers
