// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/leaders.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::checkers {
namespace {

bool at_once(const Lead& one, const Lead& other) {
  return std::max(one.from, other.from) <= std::min(one.until, other.until);
}

}  // namespace

Violations check_leaders(const std::vector<Lead>& leads) {
  Violations found;
  for (auto one = leads.begin(); one != leads.end(); ++one) {
    for (auto other = std::next(one); other != leads.end(); ++other) {
      if (one->candidate == other->candidate) continue;
      const auto when = std::max(one->from, other->from);
      if (at_once(*one, *other)) {
        found.push_back({fmt::format("{} and {} lead at once, with tokens {} and {}",
                                     one->candidate, other->candidate, one->token, other->token),
                         when});
      }
      if (one->token == other->token) {
        found.push_back({fmt::format("{} and {} led with the same token {}", one->candidate,
                                     other->candidate, one->token),
                         when});
      }
    }
  }
  return found;
}

}  // namespace dlock::checkers
