// SPDX-License-Identifier: Apache-2.0
//
// History: what a server's data was a moment ago. That is what an asynchronous replica has, and
// what a log that is fsynced once a second has after a power cut.
#pragma once

#include <deque>
#include <optional>

#include "tests/simulation/redis/keyspace.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation::redis {

class History {
 public:
  /// A key changed; null: it has gone.
  void note(TimePoint when, const std::string& key, const Entry* entry);
  /// A key has gone for good, from what was before, too.
  void forget(const std::string& key);
  /// The data as it was then, at most kDepth ago.
  Snapshot at(TimePoint when) const;

  static constexpr seconds kDepth{2};

 private:
  struct Change {
    TimePoint when;
    std::string key;
    std::optional<Entry> entry;
  };
  static void apply(const Change& change, Snapshot& to);

  Snapshot oldest_;
  std::deque<Change> changes_;
};

}  // namespace dlock::simulation::redis
