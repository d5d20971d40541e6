// SPDX-License-Identifier: Apache-2.0
//
// Section: the lock that a piece of work runs under: its kind, its name, and how long to wait. For
// synchronized(), where a program states it; and in a configuration, under `sections:`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlock::inline v0 {

/// - mutex: alone; re-entrant per thread.
/// - read, write: together with other readers of that lock, and alone, as in SharedMutex. A mutex
///   and a writer of one name exclude each other. `write` also needs a store that has readers.
/// - semaphore: some of a limited number of permits; not re-entrant. With a limit of 1 it is a
///   mutex without re-entry.
/// - multi: several locks, all or nothing, as in MultiLock.
enum class LockType { mutex, read, write, semaphore, multi };

struct Section {
  LockType type = LockType::mutex;
  /// Name of the lock or semaphore. Empty: in synchronized() the calling function's; in a
  /// configuration the section's. Type multi: must be empty.
  std::string lock = {};
  /// Type multi only: the names, in any order.
  std::vector<std::string> locks = {};
  /// How long it waits; 0 tries once. Default: as AcquireOptions::wait.
  std::optional<std::chrono::milliseconds> wait = std::nullopt;
  /// Type semaphore only: the limit, as in LockManager::semaphore(). Empty: the limit in the store.
  std::optional<std::uint32_t> limit = std::nullopt;
  /// Type semaphore only: number of permits to acquire. Empty: one.
  std::optional<std::uint32_t> permits = std::nullopt;
};

}  // namespace dlock::inline v0
