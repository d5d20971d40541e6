// SPDX-License-Identifier: Apache-2.0
//
// How a lock is given back: `gets` shows whose it is, `cas` with a date long past deletes exactly
// that value. 2 round trips. On the worker's thread, against Commands.
#pragma once

#include <string>

#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct ReleaseOrder {
  std::string key;
  std::string owner_id;
};

struct ReleaseResult {
  /// released: it was ours and is gone. not_holder: it was not ours, and nothing was done.
  ReleaseStatus status = ReleaseStatus::unknown;
  Failure failure;
};

ReleaseResult release(Commands& server, const ReleaseOrder& order);

}  // namespace dlock::memcached
