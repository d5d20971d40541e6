// SPDX-License-Identifier: Apache-2.0
//
// Splits a text of dlock into its fields, from the front. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace dlock::redis {

/// Removes the text before the separator, and the separator, from `text`. Returns the removed text.
/// Without a separator that is all of `text`.
inline std::string_view cut(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

/// Reads a number up to the next space, and removes it from `text`. Returns false if it is not a
/// number.
template <class Number>
bool cut_number(std::string_view& text, Number& number) {
  const auto piece = cut(text, ' ');
  const auto* end = piece.data() + piece.size();
  const auto [stop, error] = std::from_chars(piece.data(), end, number);
  return error == std::errc() && stop == end && !piece.empty();
}

}  // namespace dlock::redis
