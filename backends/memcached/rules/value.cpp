// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/value.hpp"

#include <fmt/format.h>

#include <charconv>

#include "dlock/spi/name.hpp"

namespace dlock::memcached {
namespace {

constexpr std::string_view kFirstLine = "dlock=1\n";

std::string one_line(std::string_view text) {
  return percent_escape(text, [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
}

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void take(Value& into, std::string_view key, std::string_view text) {
  if (key == "id") into.owner.id = percent_unescape(text);
  if (key == "host") into.owner.host = percent_unescape(text);
  if (key == "pid") into.owner.pid = to_number(text);
  if (key == "app") into.owner.app = percent_unescape(text);
  if (key == "name") into.name = percent_unescape(text);
  if (key == "lease_ms") into.lease = std::chrono::milliseconds(to_number(text));
  if (key == "since_ms") into.since_ms = to_number(text);
  if (key == "renewed_ms") into.renewed_ms = to_number(text);
}

}  // namespace

std::string write_value(const Value& value) {
  const auto& owner = value.owner;
  return fmt::format(
      "{}id={}\nhost={}\npid={}\napp={}\nname={}\nlease_ms={}\nsince_ms={}\nrenewed_ms={}\n",
      kFirstLine, one_line(owner.id), one_line(owner.host), owner.pid, one_line(owner.app),
      one_line(value.name), value.lease.count(), value.since_ms, value.renewed_ms);
}

std::optional<Value> read_value(std::string_view data) {
  if (!data.starts_with(kFirstLine)) return std::nullopt;
  data.remove_prefix(kFirstLine.size());
  Value value;
  while (!data.empty()) {
    const auto line = data.substr(0, data.find('\n'));
    data.remove_prefix(std::min(line.size() + 1, data.size()));
    if (const auto equals = line.find('='); equals != std::string_view::npos) {
      take(value, line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return value;
}

bool belongs_to(std::string_view data, std::string_view owner_id) {
  const auto value = read_value(data);
  return value && !owner_id.empty() && value->owner.id == owner_id;
}

}  // namespace dlock::memcached
