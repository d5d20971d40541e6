// SPDX-License-Identifier: Apache-2.0
//
// Durations as people write them: `10s`, `500ms`, `1m30s`, `2h`. A bare number is refused: half the
// lock libraries of this world read it as seconds, the other half as milliseconds.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::core {

/// A value, or a sentence that says what to write instead.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;
  explicit operator bool() const noexcept { return value.has_value(); }
};

/// Units: ms, s, m, h, d, each at most once, largest first; a fraction (`1.5s`) is allowed where it
/// makes whole milliseconds. `0` needs no unit.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The shortest form that parse_duration() reads back: 90'000 ms is `1m30s`.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace dlock::core
