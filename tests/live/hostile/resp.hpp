// SPDX-License-Identifier: Apache-2.0
//
// The Redis protocol for servers and proxies that lie: whole commands and whole replies.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace dlock::hostile {

using Words = std::vector<std::string>;

inline std::string bulk(std::string_view text) {
  return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

inline std::string command_of(const Words& words) {
  auto bytes = fmt::format("*{}\r\n", words.size());
  for (const auto& word : words) bytes += bulk(word);
  return bytes;
}

/// Removes one whole command from the front. None: more has to arrive.
inline Words take_words(std::string& bytes) {
  Words words;
  std::size_t at = 0;
  const auto number = [&](char mark) {
    const auto end = bytes.find("\r\n", at);
    if (end == std::string::npos || bytes[at] != mark) return -1L;
    const long value = std::stol(bytes.substr(at + 1, end - at - 1));
    at = end + 2;
    return value;
  };
  for (long left = number('*'); left > 0; --left) {
    const long size = number('$');
    if (size < 0 || bytes.size() < at + static_cast<std::size_t>(size) + 2) return {};
    words.push_back(bytes.substr(at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size) + 2;
  }
  if (!words.empty()) bytes.erase(0, at);
  return words;
}

/// Returns the length of the reply at `from`; 0: more has to arrive.
inline std::size_t reply_length(std::string_view bytes, std::size_t from = 0) {
  const auto end = bytes.find("\r\n", from);
  if (end == std::string_view::npos) return 0;
  const char kind = bytes[from];
  std::size_t at = end + 2;
  if (kind != '$' && kind != '*') return at - from;
  long count = std::stol(std::string(bytes.substr(from + 1, end - from - 1)));
  if (kind == '$') {
    if (count >= 0) at += static_cast<std::size_t>(count) + 2;
    return bytes.size() < at ? 0 : at - from;
  }
  for (; count > 0; --count) {
    if (at >= bytes.size()) return 0;
    const auto length = reply_length(bytes, at);
    if (length == 0) return 0;
    at += length;
  }
  return at - from;
}

}  // namespace dlock::hostile
