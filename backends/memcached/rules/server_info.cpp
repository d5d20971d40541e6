// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/server_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "backends/memcached/rules/lease.hpp"

namespace dlock::memcached {
namespace {

using Version = std::array<int, 3>;

template <class Number>
void read(std::string_view text, Number& number) {
  std::from_chars(text.data(), text.data() + text.size(), number);
}

Version parse_version(std::string_view text) {
  Version version{};
  for (auto& part : version) {
    read(text, part);
    const auto dot = text.find('.');
    text = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  }
  return version;
}

}  // namespace

void take_stat(ServerInfo& info, std::string_view key, std::string_view value) {
  if (key == "version") info.version = std::string(value);
  if (key == "pid") read(value, info.pid);
  if (key == "time") read(value, info.time);
  if (key == "uptime") read(value, info.uptime);
  if (key == "cmd_flush") read(value, info.flushes);
  if (key == "limit_maxbytes") read(value, info.max_bytes);
  if (key == "proxy_enabled") info.is_proxy = value == "yes";
  // `stats` counts them, `stats settings` says whether there can be any.
  if (key == "evictions" && (value == "on" || value == "off")) {
    info.evicts = value == "on";
  } else if (key == "evictions") {
    read(value, info.evictions);
  }
}

namespace {

/// When the server was started. A server may say anything: unsigned, so that nothing overflows.
std::uint64_t started(const ServerInfo& info) {
  return static_cast<std::uint64_t>(info.time) - static_cast<std::uint64_t>(info.uptime);
}

}  // namespace

bool same_run(const ServerInfo& before, const ServerInfo& after) {
  // One second apart at most, either way.
  return before.pid == after.pid && started(after) - started(before) + 1 <= 2;
}

LossReason reason_of_loss(const ServerInfo& before, const ServerInfo& after) {
  if (!same_run(before, after)) return LossReason::store_restarted;
  if (after.flushes > before.flushes) return LossReason::removed;
  if (after.evictions > before.evictions) return LossReason::evicted;
  return LossReason::removed;
}

std::string version_error(std::string_view text) {
  const auto version = parse_version(text);
  if (version < Version{1, 5, 14} || version == Version{1, 6, 12}) {
    return fmt::format(
        "memcached {}: a deleted item may live on there, and compare-and-set is broken; run 1.5.14 "
        "or later, but not 1.6.12",
        text);
  }
  return {};
}

bool has_meta_commands(std::string_view text) {
  const auto version = parse_version(text);
  return version >= Version{1, 6, 18} && version < Version{2, 0, 0};
}

Capabilities declare(const std::vector<ServerInfo>& servers, std::chrono::milliseconds lease) {
  Capabilities all;
  all.guarantee = Guarantee::best_effort;
  all.assumptions = {
      {"server_keeps_its_items", "the server is not restarted, flushed or short of memory"},
      {"server_clock_not_stopped",
       "the server is not stopped and continued while it takes a request"},
      {"clock_rate_bounded",
       "the clocks of holder and server run equally fast, within the drift margin"},
  };
  all.shortfalls.push_back(
      {"memcached forgets every lock at a restart or flush_all",
       "use a store that keeps its data (zookeeper); no setting of memcached does"});
  const auto evicting =
      std::find_if(servers.begin(), servers.end(), [](const auto& one) { return one.evicts; });
  if (evicting != servers.end()) {
    all.shortfalls.push_back(
        {fmt::format("{} may evict locks when its memory is short", evicting->address),
         "start memcached with -M, or use a separate server for locks"});
  }
  all.token = TokenStrength::time_seeded;
  all.wake_up = WakeUp::poll;
  all.lease_scope = LeaseScope::claim;
  all.lease = lease;
  all.shortest_lease = kShortestLease;
  all.longest_lease = kLongestLease;
  all.can_list = false;
  all.can_evict = true;
  all.can_adopt = true;
  all.can_raise = true;
  all.record_losses = all.shortfalls;  // for notes; a cache has no records
  for (const auto& server : servers) {
    all.notes.push_back(fmt::format("{}: memcached {}, {} MiB, evictions {}", server.address,
                                    server.version, server.max_bytes >> 20U,
                                    server.evicts ? "on" : "off (-M)"));
  }
  return all;
}

}  // namespace dlock::memcached
