// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace dlock::core {

constexpr bool is_word_letter(char c) noexcept {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/// Letters, digits, `-`, `_`, `.`; 1 to 64 bytes, not `.` or `..`: names of plans and of stores.
constexpr bool is_word(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 64 && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), is_word_letter);
}

}  // namespace dlock::core
