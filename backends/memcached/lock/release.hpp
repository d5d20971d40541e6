// SPDX-License-Identifier: Apache-2.0
//
// Releases a lock. If the number of the last stored value is known, exactly that value is deleted:
// 1 round trip. Otherwise `gets` shows its owner, and `cas` with a date long past deletes the value
// that was read: 2 round trips. Uses Commands.
#pragma once

#include <string>

#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct ReleaseOrder {
  std::string key;
  std::string owner_id;
  ItemNumber number;
};

struct ReleaseResult {
  /// released: the claim's value was there and is deleted. not_holder: it was not there, and
  /// nothing was changed.
  ReleaseStatus status = ReleaseStatus::unknown;
  Failure failure;
};

asio::awaitable<ReleaseResult> release(Commands& server, ReleaseOrder order);

}  // namespace dlock::memcached
