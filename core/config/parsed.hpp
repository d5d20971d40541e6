// SPDX-License-Identifier: Apache-2.0
//
// The result of parsing a text.
#pragma once

#include <optional>
#include <string>

namespace dlock::core {

/// A value, or a sentence that says what to write instead.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;
  explicit operator bool() const noexcept { return value.has_value(); }
};

}  // namespace dlock::core
