// SPDX-License-Identifier: Apache-2.0
//
// How leases are prolonged: one multi-get shows which keys are still ours, then one `cas` each
// sets the new expiry. Reasons for those that are gone come from the server's own counters. On the
// worker's thread, against Commands.
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
  ServerInfo info;
  Failure failure;
};

/// One result for each, in order.
std::vector<RenewResult> renew(Commands& server, const std::vector<RenewOrder>& orders);

/// Looks only: `gone` for those that are not ours any more, `extended` for the others.
std::vector<RenewResult> verify(Commands& server, const std::vector<RenewOrder>& orders);

}  // namespace dlock::memcached
