// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/name.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace dlock::inline v0 {

namespace {

constexpr std::size_t kLongestName = 512;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;  // percent_escape() writes capitals only
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;
    if (first == 0xED && second > 0x9F) return 0;
    return tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

std::string name_error(std::string_view name) {
  if (name.empty()) return "this name is empty; write 1 to 512 bytes";
  if (name.size() > kLongestName) {
    return fmt::format("this name has {} bytes; at most {} are allowed", name.size(), kLongestName);
  }
  for (std::size_t at = 0; at < name.size();) {
    const auto byte = static_cast<unsigned char>(name[at]);
    if (byte < 0x20 || byte == 0x7F) {
      return fmt::format("this name has the control byte 0x{:02X} at byte {}", byte, at + 1);
    }
    const std::size_t length = utf8_length(name, at);
    if (length == 0) return fmt::format("this name is not UTF-8 at byte {}", at + 1);
    at += length;
  }
  if (name.front() == '/') return "this name begins with '/'; write it without";
  if (name.back() == '/') return "this name ends with '/'; write it without";
  for (const std::string_view part : split_name(name)) {
    if (part.empty()) return "this name has an empty part; write one '/' between parts";
    if (part == "." || part == "..") return fmt::format("this name has a part '{}'", part);
  }
  return {};
}

std::vector<std::string_view> split_name(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = name.find('/');
    parts.push_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

std::string percent_escape(std::string_view text, const std::function<bool(unsigned char)>& plain) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '%' && plain(byte)) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", byte);
    }
  }
  return escaped;
}

std::string percent_unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::string(text);
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

}  // namespace dlock::inline v0
