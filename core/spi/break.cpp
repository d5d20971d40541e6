// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::inline v0 {
namespace {

constexpr std::size_t kLongestField = 200;
constexpr std::string_view kMarkStamp = "v=";
constexpr unsigned kMarkFormat = 1;

/// Shortens the text, but not within a character of UTF-8.
std::string_view shortened(std::string_view text) {
  auto end = std::min(text.size(), kLongestField);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

std::string field(std::string_view text) {
  return percent_escape(shortened(text), [](unsigned char c) {
    return c > 0x20 && c < 0x7F && c != ',' && c != '%';
  });
}

}  // namespace

std::string write_break(const Break& mark) {
  std::string text = field(mark.by.host) + ',';
  append_pid(mark.by, text);
  return fmt::format("{}{},{},{},{},{}", kMarkStamp, kMarkFormat, text, field(mark.by.app),
                     mark.at.count(), field(mark.reason));
}

Break read_break(std::string_view text) {
  if (auto newer = newer_format("the mark of the break", text, kMarkStamp, kMarkFormat);
      !newer.empty()) {
    Break mark;
    mark.reason = std::move(newer);
    return mark;
  }
  std::array<std::string_view, 6> fields;
  auto rest = text;
  for (auto& one : fields) {
    const auto comma = rest.find(',');
    one = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  Break mark;
  std::int64_t at = 0;
  const auto [end, error] =
      std::from_chars(fields[4].data(), fields[4].data() + fields[4].size(), at);
  if (format_of(fields[0], kMarkStamp) != kMarkFormat || error != std::errc() ||
      end != fields[4].data() + fields[4].size() || !read_pid(fields[2], mark.by)) {
    mark.by = {};
    mark.reason = percent_escape(text.substr(0, kLongestField),
                                 [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
    return mark;
  }
  mark.by.host = percent_unescape(fields[1]);
  mark.by.app = percent_unescape(fields[3]);
  mark.at = std::chrono::milliseconds(at);
  mark.reason = percent_unescape(fields[5]);
  return mark;
}

std::string break_words(const Break& mark) {
  const auto& by = mark.by;
  std::string text;
  if (!by.host.empty() || by.pid != 0) {
    text = fmt::format("{} ({}) on {}", by.app.empty() ? "a process" : by.app,
                       pid_words_for_others(by), by.host);
  }
  if (mark.reason.empty()) return text;
  return text.empty() ? mark.reason : fmt::format("{}: {}", text, mark.reason);
}

}  // namespace dlock::inline v0
