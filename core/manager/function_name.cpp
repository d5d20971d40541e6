// SPDX-License-Identifier: Apache-2.0
#include "core/manager/function_name.hpp"

#include <fmt/format.h>

#include "dlock/error.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/synchronized.hpp"

namespace dlock::core {

namespace {

constexpr auto npos = std::string_view::npos;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool at(std::string_view text, std::size_t position, std::string_view what) {
  return text.substr(position, what.size()) == what;
}

/// The position behind the bracket that closes the one at `open`, counting all kinds alike.
std::size_t behind_bracket(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

/// `operator<<`, `operator()`, `operator new`: the position behind it, npos for a conversion.
std::size_t behind_operator(std::string_view text, std::size_t start) {
  std::size_t i = start + std::string_view("operator").size();
  if (i < text.size() && text[i] == ' ') {
    for (const std::string_view word :
         {" new []", " delete []", " new[]", " delete[]", " new", " delete", " co_await"}) {
      if (at(text, i, word)) return i + word.size();
    }
    return npos;
  }
  if (at(text, i, "()")) return i + 2;
  while (i < text.size() && text[i] != '(') ++i;
  return i;
}

/// Behind the parameters: `()::Local::f()` or `() const::<lambda()>` is something inside a
/// function.
bool is_inside_a_function(std::string_view rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '&' || is_word(rest.front()))) {
    rest.remove_prefix(1);
  }
  return rest.substr(0, 2) == "::";
}

FunctionName refuse(std::string_view what) {
  return {{},
          fmt::format("{} has no name that is the same in every build; pass a lock name", what)};
}

FunctionName finish(std::string_view name, std::string_view rest, bool is_operator) {
  if (is_inside_a_function(rest)) return refuse("a lambda or a local class");
  for (const std::string_view mark : {"{anonymous}", "(anonymous", "<unnamed"}) {
    if (name.find(mark) != npos) return refuse("a function in an anonymous namespace");
  }
  if (const auto tag = name.find("[abi:"); tag != npos) name = name.substr(0, tag);
  const std::string_view scope = is_operator ? name.substr(0, name.rfind("operator")) : name;
  if (scope.find('<') != npos) return refuse("a template");
  if (name.empty()) return refuse("this function");
  if (!name_error(name).empty()) return refuse("this function");
  return {std::string(name), {}};
}

}  // namespace

FunctionName function_name(std::string_view text) {
  // g++ ` [with T = int]`, clang ` [T = int]`.
  if (text.find(" [") != npos) return refuse("a template or a generic lambda");
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool word_begins = i == 0 || !is_word(text[i - 1]);
    if (word_begins && at(text, i, "operator") && !(i + 8 < text.size() && is_word(text[i + 8]))) {
      const std::size_t end = behind_operator(text, i);
      if (end == npos) return refuse("a conversion operator");
      if (end >= text.size()) return refuse("this function");
      const std::size_t rest = behind_bracket(text, end);
      return finish(text.substr(start, end - start), text.substr(rest), true);
    }
    switch (text[i]) {
      case ' ':
      case '*':
      case '&':
        start = i + 1;
        break;
      case '<':
        i = behind_bracket(text, i) - 1;
        break;
      case '(': {
        const std::string_view token = text.substr(start, i - start);
        if (at(text, i, "(anonymous") || token == "decltype") {
          i = behind_bracket(text, i) - 1;
        } else if (token.empty()) {
          start = i + 1;  // `void (* ns::f(int))(double)`: the name is in this bracket
        } else {
          return finish(token, text.substr(behind_bracket(text, i)), false);
        }
        break;
      }
      default:
        break;
    }
  }
  return refuse("this function");
}

}  // namespace dlock::core

namespace dlock::inline v0 {

std::string detail::lock_name_of(const char* pretty_function) {
  auto parsed = core::function_name(pretty_function);
  if (parsed.problem.empty()) return std::move(parsed.name);
  Diagnostics diagnostics;
  diagnostics.server_text =
      fmt::format("synchronized() in '{}': {}", pretty_function, parsed.problem);
  throw LockError(make_error_code(errc::invalid_name), std::move(diagnostics));
}

}  // namespace dlock::inline v0
