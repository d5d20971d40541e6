// SPDX-License-Identifier: Apache-2.0
//
// One option's value: from text to number by its spec, and back out of StoreOptions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>  // program_invocation_short_name
#include <charconv>
#include <stdexcept>

#include "core/config/options.hpp"
#include "dlock/duration.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::inline v0 {

namespace {

std::int64_t number_of(const StoreOptions& options, std::string_view option) {
  const auto found = options.number.find(option);
  if (found == options.number.end()) {
    throw std::logic_error(fmt::format("option '{}' has neither value nor default", option));
  }
  return found->second;
}

}  // namespace

std::chrono::milliseconds StoreOptions::duration(std::string_view option) const {
  return std::chrono::milliseconds(number_of(*this, option));
}

std::int64_t StoreOptions::integer(std::string_view option) const {
  return number_of(*this, option);
}

bool StoreOptions::flag(std::string_view option) const { return number_of(*this, option) != 0; }

void refuse_option(const StoreOptions& options, std::string_view option, std::string text) {
  if (const auto origin = options.origin.find(option); origin != options.origin.end()) {
    text = origin->second.text() + ": " + text;
  }
  throw LockError(make_error_code(errc::config_invalid), {{}, options.name, std::move(text)});
}

const std::string& StoreOptions::string(std::string_view option) const {
  static const std::string unset;
  const auto found = text.find(option);
  return found == text.end() ? unset : found->second;
}

}  // namespace dlock::inline v0

namespace dlock::core {

namespace {

using Kind = OptionSpec::Kind;

std::string in_words(const OptionSpec& spec, std::int64_t value) {
  return spec.kind == Kind::duration ? format_duration(std::chrono::milliseconds(value))
                                     : fmt::format("{}", value);
}

std::string range_error(const OptionSpec& spec, std::string_view written, std::int64_t value) {
  if (value < spec.min) {
    return fmt::format("'{0}' is too small; write {1} or more", written, in_words(spec, spec.min));
  }
  if (value > spec.max) {
    return fmt::format("'{0}' is too large; write {1} or less", written, in_words(spec, spec.max));
  }
  return {};
}

std::string apply_duration(const OptionSpec& spec, std::string_view value, std::int64_t& number) {
  const auto duration = parse_duration(value);
  if (!duration) return fmt::format("'{}': {}", value, duration.error);
  number = duration.value->count();
  return range_error(spec, value, number);
}

std::string apply_integer(const OptionSpec& spec, std::string_view value, std::int64_t& number) {
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    return fmt::format("'{}' is too large; write a smaller number", value);
  }
  if (error != std::errc() || stop != end) {
    return fmt::format("'{}' is not a whole number; write for example {}", value,
                       std::max<std::int64_t>(spec.min, 1));
  }
  return range_error(spec, value, number);
}

std::string apply_boolean(std::string_view value, std::int64_t& number) {
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (value == word) {
      number = 1;
      return {};
    }
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (value == word) {
      number = 0;
      return {};
    }
  }
  return fmt::format("'{}' is neither yes nor no; write true or false", value);
}

std::string check_choice(const OptionSpec& spec, std::string_view value) {
  std::vector<std::string_view> choices;
  std::string_view left = spec.choices;
  while (!left.empty()) {
    const std::size_t bar = std::min(left.find('|'), left.size());
    choices.push_back(left.substr(0, bar));
    if (choices.back() == value) return {};
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  return fmt::format("'{}' is not one of its values; {}", value, suggestion(value, choices));
}

}  // namespace

std::string apply_option(const OptionSpec& spec, std::string_view value, StoreOptions& options) {
  std::int64_t number = 0;
  std::string error;
  std::string text(value);
  switch (spec.kind) {
    case Kind::duration:
      error = apply_duration(spec, value, number);
      break;
    case Kind::integer:
      error = apply_integer(spec, value, number);
      break;
    case Kind::boolean:
      error = apply_boolean(value, number);
      text = number != 0 ? "true" : "false";
      break;
    case Kind::choice:
      error = check_choice(spec, value);
      break;
    case Kind::text:
    case Kind::secret:
      break;
  }
  if (!error.empty()) return error;
  options.text[std::string(spec.name)] = std::move(text);
  if (spec.kind == Kind::duration || spec.kind == Kind::integer || spec.kind == Kind::boolean) {
    options.number[std::string(spec.name)] = number;
  }
  return {};
}

std::string program_name() { return program_invocation_short_name; }

}  // namespace dlock::core
