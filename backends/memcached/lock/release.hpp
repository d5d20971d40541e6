// SPDX-License-Identifier: Apache-2.0
//
// How a lock is given back. Where the number of what we stored last is known, exactly that value is
// deleted: 1 round trip. Else `gets` shows whose it is, and `cas` with a date long past deletes
// what was read: 2 round trips. Against Commands.
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
  /// released: it was ours and is gone. not_holder: it was not ours, and nothing was done.
  ReleaseStatus status = ReleaseStatus::unknown;
  Failure failure;
};

asio::awaitable<ReleaseResult> release(Commands& server, ReleaseOrder order);

}  // namespace dlock::memcached
