// SPDX-License-Identifier: Apache-2.0
//
// What a server says of itself (`stats`), and what follows from it: whether it is the same run,
// why a lock is gone, what can be promised. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/capabilities.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::memcached {

struct ServerInfo {
  std::string address;
  std::string version;
  std::int64_t pid = 0;
  std::int64_t time = 0;    ///< the server's wall clock
  std::int64_t uptime = 0;  ///< seconds
  std::uint64_t evictions = 0;
  std::uint64_t flushes = 0;
  std::uint64_t max_bytes = 0;
  bool is_proxy = false;  ///< memcached as a proxy before others
  bool evicts = true;     ///< drops live items when memory is short; off with -M
  /// How often we found our canary gone or changed.
  std::uint64_t canary_losses = 0;
};

/// Takes one line of `stats` or `stats settings`; what it does not know is ignored.
void take_stat(ServerInfo& info, std::string_view key, std::string_view value);

/// False: the server was restarted in between. A pid alone says little, it is 1 in a container.
bool same_run(const ServerInfo& before, const ServerInfo& after);

/// Why a lock's key is gone, by what the server said while it was there and says now.
LossReason reason_of_loss(const ServerInfo& before, const ServerInfo& after);

/// Empty, or why this version must not be used: before 1.5.14 and in 1.6.12 a deleted item may
/// live on and compare-and-set is broken (memcached issues 469 and 844).
std::string version_error(std::string_view version);

/// Whether meta commands are worth trying: from 1.6.18 on, with which they are tested. Behind a
/// proxy, whose server may be restarted unseen, the number of an item would be another's by then.
bool has_meta_commands(std::string_view version);

/// What the servers promise together.
Capabilities declare(const std::vector<ServerInfo>& servers, std::chrono::milliseconds lease);

}  // namespace dlock::memcached
