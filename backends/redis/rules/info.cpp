// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/info.hpp"

#include <charconv>

namespace dlock::redis {
namespace {

std::string value_of(const InfoLines& lines, std::string_view key) {
  const auto found = lines.find(key);
  return found == lines.end() ? std::string() : found->second;
}

std::int64_t number_of(const InfoLines& lines, std::string_view key) {
  const auto text = value_of(lines, key);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

InfoLines parse_info(std::string_view text) {
  InfoLines lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto colon = line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    lines.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return lines;
}

ServerFacts facts_from(const InfoLines& lines) {
  ServerFacts facts;
  facts.version = value_of(lines, "redis_version");
  facts.run_id = value_of(lines, "run_id");
  facts.info_known = !facts.run_id.empty();
  facts.replication_id = value_of(lines, "master_replid");
  facts.previous_replication_id = value_of(lines, "master_replid2");
  facts.replica = value_of(lines, "role") == "slave";
  facts.replicas = number_of(lines, "connected_slaves");
  facts.cluster = number_of(lines, "cluster_enabled") != 0;
  facts.sentinel = value_of(lines, "redis_mode") == "sentinel";
  facts.loading = number_of(lines, "loading") != 0;
  facts.eviction_policy = value_of(lines, "maxmemory_policy");
  facts.append_only = number_of(lines, "aof_enabled") != 0;
  const auto last_write = value_of(lines, "aof_last_write_status");
  facts.append_broken = !last_write.empty() && last_write != "ok";
  return facts;
}

ServerChange compare(const ServerFacts& before, const ServerFacts& after) {
  if (!before.info_known || !after.info_known || before.run_id == after.run_id) {
    return ServerChange::none;
  }
  const bool came_from_ours =
      !before.replication_id.empty() && (after.previous_replication_id == before.replication_id ||
                                         after.replication_id == before.replication_id);
  return came_from_ours ? ServerChange::failed_over : ServerChange::restarted;
}

}  // namespace dlock::redis
