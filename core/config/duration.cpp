// SPDX-License-Identifier: Apache-2.0
#include "dlock/duration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "core/config/parsed.hpp"

namespace dlock::inline v0 {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};

// From the largest to the smallest, as the parts of a duration are ordered.
constexpr std::array<Unit, 5> kUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

// Longer than any lock is waited for, and far from overflow in nanoseconds.
constexpr std::int64_t kLongest_ms = 36'500LL * 86'400'000;

constexpr std::size_t kMostDigits = 15;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

template <class Predicate>
std::string_view take_while(std::string_view& text, Predicate predicate) {
  std::size_t length = 0;
  while (length < text.size() && predicate(text[length])) ++length;
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

std::int64_t to_number(std::string_view digits) {
  std::int64_t number = 0;
  for (const char c : digits) number = number * 10 + (c - '0');
  return number;
}

ParsedDuration fail(std::string error) { return {{}, std::move(error)}; }

const char* const kExamples = "write for example 10s, 500ms, 1m30s or 2h";

/// One `<number><unit>` taken off the front. `first_unit` is where in kUnits the next may begin.
core::Parsed<std::int64_t> take_part(std::string_view& text, std::size_t& first_unit) {
  const std::string_view whole = take_while(text, is_digit);
  std::string_view fraction;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_while(text, is_digit);
    if (fraction.empty()) return {{}, fmt::format("it is not a duration; {}", kExamples)};
  }
  if (whole.empty() || whole.size() > kMostDigits || fraction.size() > 9) {
    return {{}, fmt::format("it is not a duration; {}", kExamples)};
  }
  const std::string_view name = take_while(text, is_letter);
  if (name.empty()) {
    return {{}, fmt::format("it has no unit; write {0}s or {0}ms", whole)};
  }
  std::size_t index = 0;
  while (index < kUnits.size() && kUnits[index].name != name) ++index;
  if (index == kUnits.size()) {
    return {{}, fmt::format("'{}' is not a unit; use ms, s, m, h or d", name)};
  }
  if (index < first_unit) {
    return {{}, "its units are not in falling order; write for example 1h30m or 1m30s"};
  }
  first_unit = index + 1;

  const std::int64_t unit = kUnits[index].ms;
  if (to_number(whole) > kLongest_ms / unit) return {{}, "it is longer than a century"};
  std::int64_t scale = 1;
  for (std::size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  const std::int64_t numerator = to_number(fraction) * unit;
  if (numerator % scale != 0) return {{}, "it is not a whole number of milliseconds"};
  return {to_number(whole) * unit + numerator / scale, {}};
}

}  // namespace

ParsedDuration parse_duration(std::string_view text) {
  if (text == "0") return {std::chrono::milliseconds(0), {}};
  if (text.empty()) return fail(fmt::format("it is empty; {}", kExamples));
  if (text.front() == '-') return fail("it is negative; a duration is 0 or more");
  std::int64_t total = 0;
  std::size_t first_unit = 0;
  while (!text.empty()) {
    const auto part = take_part(text, first_unit);
    if (!part) return fail(part.error);
    total += *part.value;
  }
  if (total > kLongest_ms) return fail("it is longer than a century");
  return {std::chrono::milliseconds(total), {}};
}

std::string format_duration(std::chrono::milliseconds duration) {
  // The lowest of all has no opposite.
  std::int64_t left = std::max(duration.count(), -std::numeric_limits<std::int64_t>::max());
  if (left == 0) return "0s";
  std::string text;
  if (left < 0) {
    text = "-";
    left = -left;
  }
  for (const Unit& unit : kUnits) {
    if (left >= unit.ms) {
      text += fmt::format("{}{}", left / unit.ms, unit.name);
      left %= unit.ms;
    }
  }
  return text;
}

}  // namespace dlock::inline v0
