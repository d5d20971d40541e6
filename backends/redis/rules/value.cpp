// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "dlock/lock_status.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/spi/name.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kLongestForeignId = 200;

constexpr bool is_plain(unsigned char c) { return c > 0x20 && c != 0x7F && c != ','; }
constexpr auto kAsItIs = [] {
  std::array<bool, 256> all{};
  for (std::size_t c = 0; c < all.size(); ++c) {
    all.at(c) = is_plain(static_cast<unsigned char>(c)) && c != '%';
  }
  return all;
}();

void append_field(std::string_view text, std::string& out) {
  const bool as_it_is =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return kAsItIs[c]; });
  out += ',';
  if (as_it_is) {
    out += text;
  } else {
    out += percent_escape(text, is_plain);
  }
}

template <class Number>
bool to_number(std::string_view text, Number& number) {
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty();
}

void append_owner(const Owner& owner, std::string& out) {
  out += owner.id;
  append_field(owner.host, out);
  append_pid(owner, out += ',');
  append_field(owner.app, out);
}

Owner foreign(std::string_view text) {
  Owner owner;
  // For terminals and JSON: no control bytes, and not a megabyte.
  owner.id = percent_escape(text.substr(0, kLongestForeignId),
                            [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
  return owner;
}

}  // namespace

std::string write_owner(const Owner& owner) {
  std::string text;
  append_owner(owner, text);
  return text;
}

Owner read_owner(std::string_view text) {
  std::vector<std::string_view> fields;
  for (auto rest = text;;) {
    const auto comma = rest.find(',');
    fields.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  Owner owner;
  if (fields.size() == 5 && fields[4].size() == kUuidLength) fields.pop_back();
  if (fields.size() != 4 || fields[0].size() != kUuidLength || !read_pid(fields[2], owner)) {
    return foreign(text);
  }
  owner.id = fields[0];
  owner.host = percent_unescape(fields[1]);
  owner.app = percent_unescape(fields[3]);
  return owner;
}

std::optional<Break> cut_mark(std::string_view prefix, char end, std::string_view& text) {
  const auto stop = text.starts_with(prefix) ? text.find(end) : std::string_view::npos;
  if (stop == std::string_view::npos) return std::nullopt;
  auto mark = read_break(text.substr(prefix.size(), stop - prefix.size()));
  text.remove_prefix(stop + 1);
  return mark;
}

LockValue read_value(std::string_view text) {
  LockValue value;
  value.broken = cut_mark(kBrokenPrefix, '\n', text);
  const auto colon = text.find(':');
  std::uint64_t token = 0;
  if (colon == std::string_view::npos || !to_number(text.substr(0, colon), token) ||
      token >= kTokenEnd) {
    value.owner = foreign(text);
    return value;
  }
  value.token = token;
  value.owner = read_owner(text.substr(colon + 1));
  return value;
}

std::uint64_t read_token(std::string_view text) {
  std::uint64_t token = 0;
  return to_number(text, token) ? token : 0;
}

std::chrono::milliseconds read_remaining(std::int64_t left_ms) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 31);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(left_ms, -1, kLongest.count()));
}

std::string write_waiter(std::string_view instance, std::string_view owner) {
  std::string text;
  text.reserve(instance.size() + 1 + owner.size());
  text.append(instance) += ' ';
  return text.append(owner);
}

WaiterText write_waiter(std::string_view instance, const Owner& owner, bool is_told) {
  WaiterText waiter;
  auto& text = waiter.text;
  text.reserve(2 * (instance.size() + 1) + owner.id.size() + owner.host.size() + owner.app.size() +
               32);
  text.append(instance) += ' ';
  waiter.owner_at = text.size();
  append_owner(owner, text);
  if (is_told) (text += ',').append(instance);
  return waiter;
}

Owner read_waiter(std::string_view text) {
  if (text.size() <= kUuidLength + 1) return foreign(text);
  return read_owner(text.substr(kUuidLength + 1));
}

}  // namespace dlock::redis
