// SPDX-License-Identifier: Apache-2.0
#include "program/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <regex>
#include <sstream>
#include <string_view>

#include "program/exit_codes.hpp"
#include "program/output.hpp"
#include "program/usage_hint.hpp"

namespace dlock::program {

namespace {

/// CLI11 would accept `--json=false` as `--json`, and `-q=5` as a count.
void refuse_values_of_flags(CLI::App& app) {
  for (auto* option : app.get_options()) {
    if (option->get_expected_max() == 0) option->disable_flag_override();
  }
  for (auto* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_values_of_flags(*verb);
  }
}

/// The verbs and options that are valid behind `app`.
UsageHint hint_at(const CLI::App& app) {
  UsageHint hint;
  hint.verb = app.get_parent() == nullptr ? std::string() : app.get_name();
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    hint.verbs.push_back(sub->get_name());
  }
  for (const auto* from = &app; from != nullptr; from = from->get_parent()) {
    for (const auto* option : from->get_options()) {
      for (const auto& name : option->get_lnames()) hint.options.push_back("--" + name);
      for (const auto& name : option->get_snames()) hint.options.push_back("-" + name);
    }
  }
  return hint;
}

/// Returns the message of CLI11 about an option with cause and remedy.
std::string in_our_words(const std::string& text) {
  std::smatch found;
  static const std::regex no_number(R"(Could not convert: (.*?) = (.*))");
  if (std::regex_match(text, found, no_number)) {
    return fmt::format("{}: '{}' is not a whole number", found.str(1), found.str(2));
  }
  static const std::regex too_often(R"((\S+): At Most 1 required but received (\d+))");
  if (std::regex_match(text, found, too_often)) {
    return fmt::format("{} occurs {} times; write it once", found.str(1), found.str(2));
  }
  static const std::regex out_of_range(R"((\S+): Value (\S+) not in range (.+))");
  if (std::regex_match(text, found, out_of_range)) {
    return fmt::format("{}: '{}': write {}", found.str(1), found.str(2), found.str(3));
  }
  static const std::regex not_one_of(R"((\S+): (.*) not in \{(.+),(.+)\})");
  if (std::regex_match(text, found, not_one_of)) {
    return fmt::format("{}: '{}': write {} or {}", found.str(1), found.str(2), found.str(3),
                       found.str(4));
  }
  static const std::regex flag(R"((\S+) was given a disallowed flag override)");
  if (std::regex_match(text, found, flag)) {
    return fmt::format("{}{} takes no value", found.length(1) == 1 ? "-" : "--", found.str(1));
  }
  return text;
}

std::string explain(const CLI::App& root, const CLI::ParseError& error,
                    const std::vector<std::string>& words, bool has_dashes) {
  const CLI::App* app = innermost(root);
  auto hint = hint_at(*app);
  hint.has_dashes = has_dashes;
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool no_verb = !hint.verbs.empty() && required;
  if (unknown || no_verb) {
    const auto left = root.remaining(true);
    for (const auto& word : words) {
      if (std::find(left.begin(), left.end(), word) != left.end()) hint.unexpected.push_back(word);
    }
    const auto at = first_word(words);
    if (no_verb && hint.unexpected.empty() && app == &root && at < words.size()) {
      hint.unexpected.push_back(words[at]);
    }
    return words_for(hint);
  }
  if (required && std::string_view(error.what()) == "NAME is required") {
    return fmt::format("the lock's name is missing; write: dlock {} NAME{}", hint.verb,
                       hint.verb == "run" ? " -- COMMAND ARGUMENT..." : " ...");
  }
  return in_our_words(error.what());
}

}  // namespace

const CLI::App* innermost(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::optional<ParseEnd> parse(CLI::App& root, const std::vector<std::string>& words,
                              bool has_dashes, const std::function<void()>& check) {
  refuse_values_of_flags(root);
  try {
    // CLI11 expects the last word first.
    root.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    check();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (root.exit(error, out, err) == 0) return ParseEnd{out.str(), {}};
    std::string verb;
    for (const auto* app = innermost(root); app != &root; app = app->get_parent()) {
      verb.insert(0, app->get_name() + " ");
    }
    const auto wrong = explain(root, error, words, has_dashes);
    return ParseEnd{{}, fmt::format("{} (try 'dlock {}--help')", wrong, verb)};
  }
}

int print(const ParseEnd& end) {
  if (!end.complaint.empty()) {
    complain(end.complaint);
    return status(Exit::usage);
  }
  print_line(end.output.substr(0, end.output.find_last_not_of('\n') + 1));
  finish_output();
  return status(Exit::ok);
}

}  // namespace dlock::program
