// SPDX-License-Identifier: Apache-2.0
//
// What every run of a migrating fleet has, whatever is done to it: workers, commands, time that
// passes, and a record of all of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/live/migration/commands.hpp"
#include "tests/live/migration/conductor.hpp"
#include "tests/live/migration/stores.hpp"
#include "tests/live/migration/workers.hpp"

namespace dlock::fleet {

/// A machine that is busy with other things.
inline constexpr auto kBusy = 5000ms;

/// A name that is wanted and that nobody holds is somebody's within this.
///
/// docs/migration.md, "How long anybody waits", for what this fleet does to itself. A step is
/// spoilt kFaultsOfAStep times at most. Each time the command leaves a lock or a place in a queue
/// that is over after its lease, or when it goes on after its pause, whichever is later; the next
/// command is run at once. Two steps may follow each other before anybody has been granted
/// anything. Then come a worker that was stopped, or died, when it was next, and `poll`.
inline constexpr std::chrono::milliseconds kProgressBound =
    (2 * kFaultsOfAStep + 1) * std::max<std::chrono::milliseconds>(kLease, kLongestPause) + kPoll +
    kBusy;

std::vector<std::string> all_names();

class FleetAtWork {
 protected:
  explicit FleetAtWork(const FleetOptions& options);

  void complain(std::string what);
  void tick();
  void work_for(std::chrono::milliseconds time);
  /// Until everybody has been granted something.
  void work_for_a_while();
  /// Those that anybody wanted.
  std::set<std::string> names_seen() const;
  /// Ends all workers, and gathers what is known.
  void collect();

  const FleetOptions& options_;
  Dice dice_;
  FleetRun run_;
  Workers workers_;
  Commands commands_;
};

}  // namespace dlock::fleet
