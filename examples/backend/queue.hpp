// SPDX-License-Identifier: Apache-2.0
//
// The algorithm, in SQL. A claim is a row; its number is its place in the queue and its token, and
// no number is ever given twice. The lowest of a lock's rows that are alive has the lock. A row is
// alive until its `until`, on the clock that all processes of the machine share; whoever asks
// clears away those that are not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "database.hpp"
#include "dlock/spi/backend.hpp"

namespace sqlite_locks {

/// All moments: nanoseconds since the machine was started.
class Queue {
 public:
  /// Makes the tables; what was claimed before the machine was started is over.
  explicit Queue(Database& db);

  struct Place {
    bool granted = false;
    bool waiting = false;
    std::int64_t before = 0;  ///< how many stand before it
    std::uint64_t token = 0;
  };
  /// `until`: of a grant; `patience`: of a place that is only kept. Whoever waits is not written
  /// anew before half of it is over.
  Place claim(const dlock::ClaimRequest& request, std::int64_t now, std::int64_t until,
              std::int64_t patience);
  enum class Renewed { yes, gone, broken };
  Renewed renew(const std::string& owner_id, std::int64_t now, std::int64_t until);
  /// The mark of that owner's claim; empty: it is not marked.
  std::string mark_of(const std::string& owner_id);
  /// Whether it was there, and not broken.
  bool release(const std::string& owner_id);
  enum class Broken { yes, marked, other_token, not_held };
  /// Marks the holder's claim, or ends it at once. `until`: when its lease is over.
  Broken break_lock(const dlock::EvictRequest& request, std::int64_t now, std::int64_t& until);
  dlock::LockStatus status(const std::string& name, std::int64_t now);
  /// Of locks that are held, those below a prefix.
  std::vector<std::string> held_names(const std::string& prefix, std::int64_t now);

 private:
  Database& db_;
};

}  // namespace sqlite_locks
