// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/value.hpp"

#include <fmt/compile.h>

#include <algorithm>
#include <charconv>

#include "dlock/lock_status.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::memcached {
namespace {

constexpr std::string_view kValueStamp = "dlock=";
constexpr unsigned kValueFormat = 1;
constexpr std::string_view kFirstLine = "dlock=1\n";

std::string one_line(std::string_view text) {
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c != 0x7F; };
  const bool as_it_is = std::all_of(text.begin(), text.end(),
                                    [&](unsigned char c) { return c != '%' && is_plain(c); });
  return as_it_is ? std::string(text) : percent_escape(text, is_plain);
}

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void take(Value& into, std::string_view key, std::string_view text) {
  if (key == "id") into.owner.id = percent_unescape(text);
  if (key == "host") into.owner.host = percent_unescape(text);
  if (key == "pid") read_pid(text, into.owner);
  if (key == "app") into.owner.app = percent_unescape(text);
  if (key == "name") into.name = percent_unescape(text);
  if (key == "lease_ms") into.lease = std::chrono::milliseconds(to_number(text));
  if (key == "since_ms") into.since_ms = to_number(text);
  if (key == "grant") into.proof = percent_unescape(text);
  if (key == "renewed_ms") into.renewed_ms = to_number(text);
  if (key == "holder") into.owner.id = percent_unescape(text);
  if (key == "broken") into.broken = read_break(text);
}

/// Returns false if it is not a value of dlock.
template <class Take>
bool each_line(std::string_view data, Take take_line) {
  if (!data.starts_with(kFirstLine)) return false;
  data.remove_prefix(kFirstLine.size());
  while (!data.empty()) {
    const auto line = data.substr(0, data.find('\n'));
    data.remove_prefix(std::min(line.size() + 1, data.size()));
    if (const auto equals = line.find('='); equals != std::string_view::npos) {
      take_line(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return true;
}

}  // namespace

std::string newer_value(std::string_view key, std::string_view data) {
  return newer_format(key, data, kValueStamp, kValueFormat);
}

std::string write_value(const Value& value) {
  const auto& owner = value.owner;
  std::string pid;
  append_pid(owner, pid);
  const auto id = value.broken ? std::string(kBrokenId) : one_line(owner.id);
  auto text = fmt::format(
      FMT_COMPILE("{}id={}\nhost={}\npid={}\napp={}\nname={}\nlease_ms={}\nsince_ms={}\n"
                  "renewed_ms={}\n"),
      kFirstLine, id, one_line(owner.host), pid, one_line(owner.app), one_line(value.name),
      value.lease.count(), value.since_ms, value.renewed_ms);
  if (!value.proof.empty()) text.append("grant=").append(one_line(value.proof)).append("\n");
  if (value.broken) {
    text.append("holder=").append(one_line(owner.id)).append("\nbroken=");
    text.append(write_break(*value.broken)).append("\n");
  }
  return text;
}

std::optional<Value> read_value(std::string_view data) {
  Value value;
  const auto into = [&value](std::string_view key, std::string_view text) {
    take(value, key, text);
  };
  if (!each_line(data, into)) return std::nullopt;
  return value;
}

std::optional<Break> mark_of(std::string_view data, std::string_view owner_id) {
  auto value = read_value(data);
  if (!value || !value->broken || value->owner.id != owner_id) return std::nullopt;
  return std::move(value->broken);
}

bool belongs_to(std::string_view data, std::string_view owner_id) {
  std::string id;
  const auto into_id = [&id](std::string_view key, std::string_view text) {
    if (key == "id") id = percent_unescape(text);
  };
  const bool value = each_line(data, into_id);
  return value && !owner_id.empty() && id == owner_id;
}

}  // namespace dlock::memcached
