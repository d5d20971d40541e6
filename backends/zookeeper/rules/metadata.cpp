// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "dlock/spi/name.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::string_view kFirstLine = "dlock=1";
/// Ours is far shorter.
constexpr std::size_t kLongestData = 65536;
constexpr std::int64_t kLongestSession_ms = 24LL * 3'600'000;

std::string one_line(std::string_view text) {
  return percent_escape(text, [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
}

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void take(Metadata& into, std::string_view key, std::string_view value) {
  if (key == "id") into.owner.id = percent_unescape(value);
  if (key == "host") into.owner.host = percent_unescape(value);
  if (key == "pid") into.owner.pid = to_number(value);
  if (key == "app") into.owner.app = percent_unescape(value);
  if (key == "session_timeout_ms") {
    // Anybody may have written it; the servers' own limit is below a day.
    const auto written = std::clamp<std::int64_t>(to_number(value), 0, kLongestSession_ms);
    into.session_timeout = std::chrono::milliseconds(written);
  }
}

}  // namespace

std::string write_metadata(const Metadata& metadata) {
  const auto& owner = metadata.owner;
  return fmt::format("{}\nid={}\nhost={}\npid={}\napp={}\nsession_timeout_ms={}\n", kFirstLine,
                     one_line(owner.id), one_line(owner.host), owner.pid, one_line(owner.app),
                     metadata.session_timeout.count());
}

std::optional<Metadata> read_metadata(std::string_view data) {
  if (data.size() > kLongestData || !data.starts_with(kFirstLine)) return {};
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

}  // namespace dlock::zookeeper
