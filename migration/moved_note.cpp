// SPDX-License-Identifier: Apache-2.0
#include "migration/moved_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "migration/plan.hpp"

namespace dlock::core::migration {

bool MovedNote::has(std::string_view name) const {
  return std::binary_search(names.begin(), names.end(), name);
}

void MovedNote::add(const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  names = parse_list(list_text(std::move(names)));
}

void MovedNote::remove(const std::vector<std::string>& gone) {
  ++removals;
  const auto sorted = parse_list(list_text(gone));
  std::erase_if(names, [&](const std::string& name) {
    return std::binary_search(sorted.begin(), sorted.end(), name);
  });
}

std::string to_text(const MovedNote& note) {
  auto lines = note.names;
  // No lock's name begins with a slash.
  if (note.removals > 0) lines.push_back(fmt::format("/{}", note.removals));
  return list_text(std::move(lines));
}

MovedNote parse_moved(std::string_view text) {
  MovedNote note;
  for (auto& line : parse_list(text)) {
    if (!line.starts_with('/')) {
      note.names.push_back(std::move(line));
      continue;
    }
    std::from_chars(line.data() + 1, line.data() + line.size(), note.removals);
  }
  return note;
}

}  // namespace dlock::core::migration
