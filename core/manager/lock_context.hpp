// SPDX-License-Identifier: Apache-2.0
//
// LockContext: what the locks of one manager share beside their store, for Mutex and the async_
// twins. The engine is one; a lock without a manager makes its own.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "dlock/distributed_lock.hpp"

namespace dlock::core {
class Reentry;
}

namespace dlock::inline v0::detail {

/// Thread safety: all members from any thread.
class LockContext {
 public:
  virtual ~LockContext() = default;
  virtual core::Reentry& reentry() = 0;
  /// For completion handlers without an executor: one at a time.
  virtual boost::asio::any_io_executor callback_executor() = 0;
};

}  // namespace dlock::inline v0::detail
