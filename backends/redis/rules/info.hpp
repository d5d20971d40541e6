// SPDX-License-Identifier: Apache-2.0
//
// Reads the lines of INFO that decide what the server can guarantee. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/clock.hpp"

namespace dlock::redis {

using InfoLines = std::map<std::string, std::string, std::less<>>;

/// `key:value` lines; section headings and anything else are skipped.
InfoLines parse_info(std::string_view text);

struct ServerFacts {
  bool info_known = false;  ///< false: INFO is not allowed, and what it would say is unknown
  std::string version;
  std::string run_id;
  std::string replication_id;           ///< ID of the data set; a promoted replica gets a new one
  std::string previous_replication_id;  ///< ID of the data set that a promoted replica was copied
                                        ///< from
  bool replica = false;
  std::int64_t replicas = 0;
  bool cluster = false;
  bool sentinel = false;
  bool loading = false;
  std::string eviction_policy;
  bool append_only = false;
  bool append_broken = false;  ///< the last write to the append-only file failed

  /// Replies to CONFIG GET; empty if it is not allowed.
  std::optional<std::string> fsync;
  std::optional<std::string> no_fsync_on_rewrite;

  /// The server's error text if PUBLISH is not allowed: no waiter can be notified.
  std::string publish_refused;

  /// The reply to TIME, in us. 0: not allowed.
  std::uint64_t time = 0;
  TimePoint time_asked{};
};

ServerFacts facts_from(const InfoLines& lines);

/// The change of the server behind the address that a reconnect found.
enum class ServerChange { none, restarted, failed_over };
ServerChange compare(const ServerFacts& before, const ServerFacts& after);

}  // namespace dlock::redis
