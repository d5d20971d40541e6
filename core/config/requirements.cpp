// SPDX-License-Identifier: Apache-2.0
#include "core/config/requirements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dlock/spi/options.hpp"

namespace dlock::core {

namespace {

struct Requirement {
  std::string_view word;
  bool (*is_met)(const Capabilities&);
  std::string_view instead;  ///< empty: the store's guarantee says it
};

constexpr std::array kRequirements{
    Requirement{"exclusive",
                [](const Capabilities& has) { return has.guarantee == Guarantee::exclusive; }, ""},
    Requirement{"fair", [](const Capabilities& has) { return has.fair; }, ""},
    Requirement{"token",
                [](const Capabilities& has) { return has.token == TokenStrength::durable; }, ""},
    Requirement{"shared", [](const Capabilities& has) { return has.shared_mode; },
                "exclusive locks only"},
    Requirement{"semaphore", [](const Capabilities& has) { return has.permits; }, "no semaphores"},
    Requirement{"max_queue", [](const Capabilities& has) { return has.can_bound_queue; },
                "no count of the waiters"},
    Requirement{"head_start", [](const Capabilities& has) { return has.can_head_start; },
                "no waiter passes earlier ones"},
    Requirement{"revocable", [](const Capabilities& has) { return has.can_ask; },
                "no way to ask a holder for its lock"},
    Requirement{"adoption", [](const Capabilities& has) { return has.can_adopt; },
                "no grants that change process"},
};

/// Null: an unknown requirement.
const Requirement* find(std::string_view word) {
  const auto* const found = std::find_if(kRequirements.begin(), kRequirements.end(),
                                         [&](const Requirement& one) { return one.word == word; });
  return found == kRequirements.end() ? nullptr : found;
}

std::array<std::string_view, kRequirements.size()> all_words() {
  std::array<std::string_view, kRequirements.size()> words;
  std::transform(kRequirements.begin(), kRequirements.end(), words.begin(),
                 [](const Requirement& one) { return one.word; });
  return words;
}

}  // namespace

Parsed<std::vector<std::string>> parse_requirements(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (find(word) == nullptr) {
      return {{},
              fmt::format("'{}' is not a requirement; {}", word, suggestion(word, all_words()))};
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  return {std::move(words), {}};
}

bool meets(const Capabilities& capabilities, std::string_view requirement) {
  const auto* const known = find(requirement);
  return known != nullptr && known->is_met(capabilities);
}

std::string_view offered_instead(const Capabilities& capabilities, std::string_view requirement) {
  const auto* const known = find(requirement);
  if (known != nullptr && !known->instead.empty()) return known->instead;
  return to_string(capabilities.guarantee);
}

}  // namespace dlock::core
