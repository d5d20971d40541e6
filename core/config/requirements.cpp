// SPDX-License-Identifier: Apache-2.0
#include "core/config/requirements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dlock/spi/suggestion.hpp"

namespace dlock::core {

namespace {
constexpr std::array<std::string_view, 8> kWords{"exclusive", "fair",      "token",     "shared",
                                                 "semaphore", "max_queue", "revocable", "adoption"};
}

Parsed<std::vector<std::string>> parse_requirements(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) {
      return {{}, fmt::format("'{}' is not a requirement; {}", word, suggestion(word, kWords))};
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  return {std::move(words), {}};
}

}  // namespace dlock::core
