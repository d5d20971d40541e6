// SPDX-License-Identifier: Apache-2.0
//
// The facts that a server reports (`stats`), and the conclusions: whether it is the same run, why a
// lock is gone, and the guarantees. Pure.
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
  /// The number of times that the canary was gone or changed.
  std::uint64_t canary_losses = 0;
};

/// Reads one line of `stats` or `stats settings`; ignores unknown ones.
void take_stat(ServerInfo& info, std::string_view key, std::string_view value);

/// False: the server was restarted in between. A pid alone says little, it is 1 in a container.
bool same_run(const ServerInfo& before, const ServerInfo& after);

/// Returns why a lock's key is gone, from the server's facts while it was there and now.
LossReason reason_of_loss(const ServerInfo& before, const ServerInfo& after);

/// Returns why this version must not be used, or an empty text. Before 1.5.14 and in 1.6.12 a
/// deleted item may live on, and compare-and-set is broken (memcached issues 469 and 844).
std::string version_error(std::string_view version);

/// Returns whether meta commands are worth trying: from 1.6.18 on, with which they are tested. Not
/// behind a proxy, whose server may be restarted unseen: then an item's number could be another
/// item's.
bool has_meta_commands(std::string_view version);

/// Returns what the servers guarantee together.
Capabilities declare(const std::vector<ServerInfo>& servers, std::chrono::milliseconds lease);

}  // namespace dlock::memcached
