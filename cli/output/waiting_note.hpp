// SPDX-License-Identifier: Apache-2.0
//
// For whom we wait: looked up apart from the waiting, which must not wait for the answer.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "dlock/lock_manager.hpp"

namespace dlock::cli {

/// Who holds the lock now, for people: `held by ./report.sh (pid 4711) on web1 for 3m20s`; empty if
/// nobody does or the store does not say. Waits for the store, half a second at most. Never throws.
std::string holder_of(LockManager& locks, const std::string& name) noexcept;

/// Returns the waiter that keeps a semaphore's free permits from others, with advice. Empty if too
/// few are free for `permits`, or the store does not answer. Never throws.
std::string waiter_ahead(LockManager& locks, const std::string& name,
                         std::uint32_t permits) noexcept;

/// Prints it once, as `waiting for x, held by ...`, or why the store is out of reach. The manager
/// must outlive it; its end waits for the store's answer, unless the manager is closed.
class WaitingNote {
 public:
  /// Only if standard error is a terminal, and not with --quiet.
  static bool is_wanted() noexcept;

  /// Of a semaphore only the reason why its store is out of reach is printed.
  enum class About { lock, semaphore };
  WaitingNote(LockManager& locks, const std::string& name, About about);
  ~WaitingNote();
  WaitingNote(const WaitingNote&) = delete;
  WaitingNote& operator=(const WaitingNote&) = delete;

 private:
  std::thread thread_;
};

}  // namespace dlock::cli
