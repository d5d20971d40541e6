// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/exclusion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::checkers {
namespace {

struct Numbered {
  GrantId id;
  const Grant* grant;
};

/// By name, in the order of the grants.
std::map<std::string, std::vector<Numbered>> by_name(const std::map<GrantId, Grant>& grants) {
  std::map<std::string, std::vector<Numbered>> names;
  for (const auto& [id, grant] : grants) names[grant.name].push_back({id, &grant});
  for (auto& [name, list] : names) {
    std::stable_sort(list.begin(), list.end(), [](const Numbered& a, const Numbered& b) {
      return a.grant->granted < b.grant->granted;
    });
  }
  return names;
}

std::string describe(const Numbered& one) {
  return fmt::format("grant {} of '{}' to {}", one.id, one.grant->name, one.grant->client);
}

std::vector<Overlap> overlaps(const std::map<GrantId, Grant>& grants) {
  std::vector<Overlap> found;
  for (const auto& [name, list] : by_name(grants)) {
    // Whoever has stopped believing never starts again: an extension after the deadline makes no
    // sense, and has been found.
    std::vector<Numbered> believers;
    for (const auto& one : list) {
      const auto when = one.grant->granted;
      std::erase_if(believers,
                    [when](const Numbered& earlier) { return !earlier.grant->believed_at(when); });
      for (const auto& earlier : believers) {
        const bool together = earlier.grant->is_reader_at(when) && one.grant->is_reader_at(when);
        if (!together) found.push_back({earlier.id, one.id, when});
      }
      believers.push_back(one);
    }
  }
  return found;
}

}  // namespace

std::vector<Overlap> overlaps_of(const History& history, Violations& broken) {
  return overlaps(grants_of(history, broken));
}

Violations check_exclusion(const History& history) {
  Violations found;
  const auto grants = grants_of(history, found);
  for (const auto& one : overlaps(grants)) {
    const Numbered later{one.later, &grants.at(one.later)};
    const Numbered earlier{one.earlier, &grants.at(one.earlier)};
    found.push_back(
        {fmt::format("{} while {} believes that it holds it", describe(later), describe(earlier)),
         one.at});
  }
  return found;
}

Violations check_tokens(const History& history) {
  Violations found;
  const auto grants = grants_of(history, found);
  for (const auto& [name, list] : by_name(grants)) {
    std::uint64_t highest = 0;
    std::uint64_t highest_exclusive = 0;
    const bool has_tokens = std::any_of(
        list.begin(), list.end(), [](const Numbered& one) { return one.grant->token.has_value(); });
    for (const auto& one : list) {
      if (!has_tokens) break;
      if (!one.grant->token) {
        found.push_back({describe(one) + " has no token", one.grant->granted});
        continue;
      }
      const auto token = *one.grant->token;
      const bool reads = one.grant->mode == Mode::shared;
      const auto before = reads ? highest_exclusive : highest;
      if (token <= before) {
        found.push_back({fmt::format("{} has token {}, after {}", describe(one), token, before),
                         one.grant->granted});
      }
      highest = std::max(highest, token);
      if (!reads) highest_exclusive = std::max(highest_exclusive, token);
    }
  }
  return found;
}

Violations check_telling(const History& history) {
  Violations found;
  grants_of(history, found);
  return found;
}

}  // namespace dlock::checkers
