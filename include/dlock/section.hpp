// SPDX-License-Identifier: Apache-2.0
//
// Section: what a piece of work runs under: which kind of lock, of which name, and how long it
// waits. For synchronized(), where a program says it; and in a configuration, under `sections:`.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlock::inline v0 {

/// mutex: alone; re-entrant per thread.
/// read, write: together with other readers of that lock, and alone, as SharedMutex has them. A
/// mutex and a writer of one name exclude each other; `write` wants a store that has readers, too.
/// semaphore: so many permits of so many; not re-entrant. With a limit of 1 a mutex that is not.
/// multi: several locks, all or nothing, as MultiLock has them.
enum class LockType { mutex, read, write, semaphore, multi };

struct Section {
  LockType type = LockType::mutex;
  /// Its name, or the semaphore's. Empty: in synchronized() the calling function's; in a
  /// configuration that of the section. Of multi: nothing.
  std::string lock = {};
  /// Of multi only: the names, in any order.
  std::vector<std::string> locks = {};
  /// How long it waits; 0 tries once. Default: as AcquireOptions::wait.
  std::optional<std::chrono::milliseconds> wait = std::nullopt;
  /// Of semaphore only, as LockManager::semaphore() has it. Empty: as many as the store says.
  std::optional<std::uint32_t> limit = std::nullopt;
  /// Of semaphore only: how many it takes. Empty: one.
  std::optional<std::uint32_t> permits = std::nullopt;
};

}  // namespace dlock::inline v0
