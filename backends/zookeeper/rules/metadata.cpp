// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/metadata.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "dlock/lock_status.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::string_view kDataStamp = "dlock=";
constexpr unsigned kDataFormat = 1;
constexpr std::string_view kFirstLine = "dlock=1";
/// The usual length of the metadata is below this.
constexpr std::size_t kUsual = 256;
constexpr std::size_t kLongestData = 65536;
constexpr std::int64_t kLongestSession_ms = 24LL * 3'600'000;
constexpr std::int64_t kLongestWithin_ms = 365 * kLongestSession_ms;

bool is_of_a_line(unsigned char c) { return c >= 0x20 && c != 0x7F; }

void add_line(std::string& to, std::string_view key, std::string_view value) {
  const bool is_plain = std::all_of(value.begin(), value.end(), [](char c) {
    return c != '%' && is_of_a_line(static_cast<unsigned char>(c));
  });
  to.append(key).append("=");
  if (is_plain) {
    to.append(value);
  } else {
    to.append(percent_escape(value, is_of_a_line));
  }
  to.append("\n");
}

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void take(Metadata& into, std::string_view key, std::string_view value) {
  if (key == "id") into.owner.id = percent_unescape(value);
  if (key == "host") into.owner.host = percent_unescape(value);
  if (key == "pid") read_pid(value, into.owner);
  if (key == "app") into.owner.app = percent_unescape(value);
  if (key == "born") into.born = std::max<std::int64_t>(to_number(value), 0);
  if (key == "revocable") into.revocable = value == "1";
  if (key == "breakable") into.breakable = value == "1";
  if (key == "broken") into.broken = read_break(percent_unescape(value));
  if (key == "asked_by")
    into.asked.emplace(into.asked.value_or(Revocation{})).who = percent_unescape(value);
  if (key == "asked_within_ms") {
    const auto within = std::clamp<std::int64_t>(to_number(value), 0, kLongestWithin_ms);
    into.asked.emplace(into.asked.value_or(Revocation{})).within =
        std::chrono::milliseconds(within);
  }
  if (key == "permits") {
    into.permits = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(to_number(value), 0, std::numeric_limits<std::int32_t>::max()));
  }
  if (key == "session_timeout_ms") {
    // Any program may have written it; the servers' own limit is below a day.
    const auto written = std::clamp<std::int64_t>(to_number(value), 0, kLongestSession_ms);
    into.session_timeout = std::chrono::milliseconds(written);
  }
}

}  // namespace

std::string write_metadata(const Metadata& metadata) {
  const auto& owner = metadata.owner;
  std::string data;
  data.reserve(kUsual);
  data.append(kFirstLine).append("\n");
  add_line(data, "id", owner.id);
  add_line(data, "host", owner.host);
  std::string pid;
  append_pid(owner, pid);
  add_line(data, "pid", pid);
  add_line(data, "app", owner.app);
  add_line(data, "session_timeout_ms", std::to_string(metadata.session_timeout.count()));
  if (metadata.born != 0) add_line(data, "born", std::to_string(metadata.born));
  if (metadata.revocable) add_line(data, "revocable", "1");
  if (metadata.permits != 0) add_line(data, "permits", std::to_string(metadata.permits));
  if (metadata.breakable) add_line(data, "breakable", "1");
  if (metadata.broken) add_line(data, "broken", write_break(*metadata.broken));
  if (!metadata.asked) return data;
  add_line(data, "asked_by", metadata.asked->who);
  if (const auto& within = metadata.asked->within) {
    add_line(data, "asked_within_ms", std::to_string(within->count()));
  }
  return data;
}

std::optional<Metadata> read_metadata(std::string_view data) {
  if (data.size() > kLongestData || format_of(data, kDataStamp) != kDataFormat) return {};
  Metadata metadata;
  while (!data.empty()) {
    const auto end = data.find('\n');
    const auto line = data.substr(0, end);
    if (const auto equals = line.find('='); equals != std::string_view::npos) {
      take(metadata, line.substr(0, equals), line.substr(equals + 1));
    }
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  return metadata;
}

std::string newer_metadata(std::string_view node, std::string_view data) {
  return newer_format(node, data, kDataStamp, kDataFormat);
}

bool may_be_broken(std::string_view node, std::string_view data) {
  const auto metadata = read_metadata(data);
  return (metadata && metadata->broken) || !newer_metadata(node, data).empty();
}

std::int64_t born_of(const std::optional<Metadata>& metadata, std::int64_t czxid) {
  const bool stepped_down = metadata && metadata->born > 0 && metadata->born < czxid;
  return stepped_down ? metadata->born : czxid;
}

std::optional<Revocation> read_asking(std::string_view data) {
  if (data == kRevoke) return Revocation{};
  const auto metadata = read_metadata(data);
  return metadata ? metadata->asked : std::nullopt;
}

}  // namespace dlock::zookeeper
