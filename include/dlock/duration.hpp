// SPDX-License-Identifier: Apache-2.0
//
// Durations as people write them in dlock's configuration and on its command line: `10s`, `500ms`,
// `1m30s`, `2h`. For programs that read a wait or a lease from their own options. A bare number is
// refused: half of the lock libraries read it as seconds, the other half as milliseconds.
//
//   const auto wait = dlock::parse_duration(argument);
//   if (!wait) throw UsageError("--wait: " + wait.error);
//   lock->acquire({.wait = *wait.value});
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::inline v0 {

struct ParsedDuration {
  std::optional<std::chrono::milliseconds> value;  ///< empty: it was none
  std::string error;  ///< then: what is wrong with it, and what to write instead
  explicit operator bool() const noexcept { return value.has_value(); }
};

/// Units: ms, s, m, h, d, each at most once, largest first; a fraction (`1.5s`) is allowed where it
/// makes whole milliseconds. `0` needs no unit. Neither negative nor longer than a century. Throws
/// nothing but std::bad_alloc. Any thread, as is format_duration().
ParsedDuration parse_duration(std::string_view text);

/// Returns the shortest form that parse_duration() reads back: 90'000 ms is `1m30s`. A negative
/// duration begins with `-`.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace dlock::inline v0
