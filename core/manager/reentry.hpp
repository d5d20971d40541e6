// SPDX-License-Identifier: Apache-2.0
//
// The locks that each thread has entered: the re-entry of Mutex, SharedMutex and synchronized, one
// table per manager. The stores do not know it; a DistributedLock alone is not re-entrant.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "dlock/lock_handle.hpp"

namespace dlock::core {

/// Thread safety: all members from any thread; an entry is touched by its own thread only.
class Reentry {
 public:
  struct Entry {
    LockHandle handle;
    int depth = 0;         ///< entries in mode exclusive
    int shared_depth = 0;  ///< entries in mode shared, beside or without the others
    int& depth_of(Mode mode) { return mode == Mode::shared ? shared_depth : depth; }
  };

  Reentry();

  /// The calling thread's entry; null if it has not entered. Stays valid until leave().
  Entry* find(const std::string& name);
  void enter(const std::string& name, LockHandle handle, Mode mode);
  /// Removes the calling thread's entry.
  LockHandle leave(const std::string& name);
  /// This process is a fork()ed child: the table's mutex may be locked for ever.
  bool is_foreign() const noexcept;

 private:
  /// Numbers threads; an std::thread::id is used again when its thread has ended.
  static std::uint64_t this_thread() noexcept;
  using Key = std::pair<std::string, std::uint64_t>;

  const unsigned generation_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace dlock::core
