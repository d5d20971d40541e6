// SPDX-License-Identifier: Apache-2.0
//
// Taking a text of ours to pieces, from its beginning. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace dlock::redis {

/// What is before the separator, which is taken off `text` with it; all, if there is none.
inline std::string_view cut(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

/// What is before the next space. False: it is no number.
template <class Number>
bool cut_number(std::string_view& text, Number& number) {
  const auto piece = cut(text, ' ');
  const auto* end = piece.data() + piece.size();
  const auto [stop, error] = std::from_chars(piece.data(), end, number);
  return error == std::errc() && stop == end && !piece.empty();
}

}  // namespace dlock::redis
