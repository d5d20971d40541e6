// SPDX-License-Identifier: Apache-2.0
//
// How leases are prolonged: one multi-get shows which keys are still ours, then one `cas` each
// sets the new expiry. Reasons for those that are gone come from the server's own counters. Against
// Commands.
#pragma once

#include <string>
#include <vector>

#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct RenewOrder {
  std::string key;
  Value value;
  ServerInfo info;  ///< what the server said when the lock was last seen there
};

struct RenewResult {
  ExtendStatus status = ExtendStatus::unavailable;
  TimePoint sent{};  ///< the lease counts from here
  LossReason reason = LossReason::none;
  ItemNumber number;  ///< of what is stored, if it was extended
  ServerInfo info;
  Failure failure;
  std::string broken_by{};  ///< as in ExtendAnswer
};

/// One result for each, in order.
asio::awaitable<std::vector<RenewResult>> renew(Commands& server, std::vector<RenewOrder> orders);

/// Looks only: `gone` for those that are not ours any more, `extended` for the others.
asio::awaitable<std::vector<RenewResult>> verify(Commands& server, std::vector<RenewOrder> orders);

}  // namespace dlock::memcached
