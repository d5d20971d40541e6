// SPDX-License-Identifier: Apache-2.0
//
// AncestorCheck: finds out whether this process waits for a lock that its own ancestor holds, so
// that the wait would not end. The environment does not say so after sudo or `env -i`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::cli {

/// Returns the pid of the holder that is an ancestor of this process. 0: no ancestor holds it.
std::int64_t holding_ancestor(const LockStatus& status);

class AncestorCheck {
 public:
  /// Asks the store once, on another thread, which calls `found` if an ancestor holds the lock. The
  /// manager must outlive this object; closing the manager ends the question.
  AncestorCheck(LockManager& locks, const std::string& name, std::function<void()> found);
  ~AncestorCheck();
  AncestorCheck(const AncestorCheck&) = delete;
  AncestorCheck& operator=(const AncestorCheck&) = delete;

  /// Returns the pid of the ancestor that holds the lock; 0: none is known.
  std::int64_t holder() const noexcept { return holder_.load(); }

 private:
  std::atomic<std::int64_t> holder_ = 0;
  std::thread thread_;
};

}  // namespace dlock::cli
