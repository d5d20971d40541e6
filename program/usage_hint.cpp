// SPDX-License-Identifier: Apache-2.0
#include "program/usage_hint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "dlock/spi/options.hpp"

namespace dlock::program {

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

std::string about_option(const UsageHint& hint, const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  const auto known = views(hint.options);
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return fmt::format("'{}' is an option of the verb; write: dlock {} {} ...", name, hint.verb,
                       word);
  }
  // Each short name is near each other one.
  const auto near = name.starts_with("--") ? nearest_word(name, known) : std::string_view();
  const auto where = hint.verb.empty() ? std::string("dlock") : "dlock " + hint.verb;
  return fmt::format("'{}' is not an option of {}{}", name, where,
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

}  // namespace

std::string words_for(const UsageHint& hint) {
  if (hint.unexpected.empty()) {
    return fmt::format("a verb is missing{}{}: one of {}", hint.verb.empty() ? "" : " behind ",
                       hint.verb, fmt::join(hint.verbs, ", "));
  }
  const std::string& word = hint.unexpected.front();
  if (word.starts_with('-')) return about_option(hint, word);
  if (!hint.verbs.empty()) {
    const auto known = views(hint.verbs);
    return fmt::format("'{}' is not a verb{}{}; {}", word, hint.verb.empty() ? "" : " of ",
                       hint.verb, suggestion(word, known));
  }
  if (hint.verb == "run" && !hint.has_dashes) {
    return fmt::format("a '--' is missing before the command; write: dlock run NAME -- {}",
                       fmt::join(hint.unexpected, " "));
  }
  return fmt::format("'{}' is one word too many", word);
}

std::size_t first_word(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--config" || words[i] == "--store") {
      ++i;
    } else if (!words[i].starts_with('-')) {
      return i;
    }
  }
  return words.size();
}

}  // namespace dlock::program
