// SPDX-License-Identifier: Apache-2.0
#include "core/config/routes.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "dlock/spi/name.hpp"

namespace dlock::core {

namespace {

using Parts = std::span<const std::string_view>;

/// One part against one part: `*` only. Linear, with one point to go back to.
bool part_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// The same algorithm one level up, with `**` as the star and parts as its letters.
bool parts_match(Parts pattern, Parts name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && part_matches(pattern[p], name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == "**") ++p;
  return p == pattern.size();
}

/// Whether two sequences have a common reading. `is_star`: this letter is any number of letters.
/// `meet`: one letter can be both of these two.
template <class Sequence, class IsStar, class Meet>
bool sequences_meet(const Sequence& one, const Sequence& other, IsStar is_star, Meet meet) {
  // Whether one[i..] and other[j..] do, from their ends.
  std::vector<bool> below(other.size() + 1);
  std::vector<bool> row(other.size() + 1);
  for (std::size_t i = one.size() + 1; i-- > 0;) {
    for (std::size_t j = other.size() + 1; j-- > 0;) {
      const bool one_ends = i == one.size();
      const bool other_ends = j == other.size();
      if (one_ends && other_ends) {
        row[j] = true;
      } else if (!one_ends && is_star(one[i])) {
        row[j] = below[j] || (!other_ends && row[j + 1]);
      } else if (!other_ends && is_star(other[j])) {
        row[j] = row[j + 1] || (!one_ends && below[j]);
      } else {
        row[j] = !one_ends && !other_ends && meet(one[i], other[j]) && below[j + 1];
      }
    }
    std::swap(row, below);
  }
  return below[0];
}

bool parts_meet(std::string_view one, std::string_view other) {
  return sequences_meet(
      one, other, [](char c) { return c == '*'; }, [](char a, char b) { return a == b; });
}

}  // namespace

const RouteConfig* first_match(std::span<const RouteConfig> routes, std::string_view name) {
  const auto found = std::find_if(routes.begin(), routes.end(), [&](const RouteConfig& route) {
    return pattern_matches(route.match, name);
  });
  return found == routes.end() ? nullptr : &*found;
}

const std::string* other_store(const RouteConfig& route) noexcept {
  return route.migrate ? &route.migrate->to : nullptr;
}

bool leads_to(const RouteConfig& route, std::string_view store) noexcept {
  const auto* other = other_store(route);
  return route.store == store || (other != nullptr && *other == store);
}

bool pattern_matches(std::string_view pattern, std::string_view name) {
  return parts_match(split_name(pattern), split_name(name));
}

std::string pattern_error(std::string_view pattern) {
  // A pattern is a name in which stars are letters like others.
  if (auto error = name_error(pattern); !error.empty()) return error;
  for (const std::string_view part : split_name(pattern)) {
    if (part != "**" && part.find("**") != std::string_view::npos) {
      return "`**` must be a part of its own; write a/**/b, or * within a part";
    }
  }
  return {};
}

bool pattern_covers(std::string_view first, std::string_view second) {
  if (first == second) return true;
  if (second.find('*') == std::string_view::npos) return pattern_matches(first, second);
  // `a/**` covers whatever begins with the literal parts `a/`.
  const auto wide = split_name(first);
  const auto narrow = split_name(second);
  if (wide.back() != "**" || narrow.size() + 1 < wide.size()) return false;
  for (std::size_t i = 0; i + 1 < wide.size(); ++i) {
    if (wide[i] != narrow[i] || wide[i] == "**") return false;
  }
  return true;
}

bool patterns_meet(std::string_view one, std::string_view other) {
  return sequences_meet(
      split_name(one), split_name(other), [](std::string_view part) { return part == "**"; },
      parts_meet);
}

}  // namespace dlock::core
