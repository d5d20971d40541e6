// SPDX-License-Identifier: Apache-2.0
//
// Renews leases: one multi-get shows which keys still have their claims' values, then one `cas`
// each sets the new expiry. The server's own counters show why others are gone. Uses Commands.
#pragma once

#include <string>
#include <vector>

#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct RenewOrder {
  std::string key;
  Value value;
  ServerInfo info;  ///< the server's facts when the lock was last seen there
};

struct RenewResult {
  ExtendStatus status = ExtendStatus::unavailable;
  TimePoint sent{};  ///< the lease counts from here
  LossReason reason = LossReason::none;
  ItemNumber number;  ///< number of the stored value, if it was extended
  ServerInfo info;
  Failure failure;
  std::string broken_by{};  ///< as in ExtendAnswer
};

/// One result for each, in order.
asio::awaitable<std::vector<RenewResult>> renew(Commands& server, std::vector<RenewOrder> orders);

/// Reads only: returns `gone` for claims whose keys have other values or none, `extended` for the
/// others.
asio::awaitable<std::vector<RenewResult>> verify(Commands& server, std::vector<RenewOrder> orders);

}  // namespace dlock::memcached
