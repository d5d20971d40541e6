// SPDX-License-Identifier: Apache-2.0
//
// One run of a migrating fleet: workers under load, `dlock migrate` taking their locks through
// three stores, and whatever is killed and stopped meanwhile.
#pragma once

#include <map>
#include <string>

#include "tests/live/migration/commands.hpp"
#include "tests/soak/records.hpp"

namespace dlock::fleet {

struct FleetOptions {
  std::string program;  ///< ourselves, to run workers
  std::string dlock;
  unsigned seed = 1;
  std::size_t first_leg = 0;  ///< of Stores::legs()
  std::size_t last_leg = 3;
  /// Takes records out of a source by hand, which no promise covers: two holders must be seen.
  bool plant_lost_record = false;
  /// With a leased gate instead, from this store: memcached or redis. Empty: without.
  std::string leased_source;
  std::string leased_target = "zookeeper";  ///< or durable, or redis with the gate in ZooKeeper
  /// The leased source forgets while programs know it alone: two holders must be seen.
  bool plant_early_wipe = false;

  bool is_planted() const { return plant_lost_record || plant_early_wipe; }
};

struct FleetRun {
  soak::Records records;
  std::vector<Remark> remarks;
  std::size_t commands = 0;
  std::size_t commands_killed = 0;
  std::size_t commands_stopped = 0;
  std::size_t records_written = 0;  ///< as commands told that lived to tell it
  std::size_t turned_away = 0;      ///< acquires of those whose configuration did not fit
};

FleetRun run_fleet(const FleetOptions& options);
/// A run of run_fleet() with a leased gate.
FleetRun run_leased_fleet(const FleetOptions& options);

/// What the judge goes by.
soak::Terms terms();

/// The longest time for which a name was wanted and nobody held it.
Duration longest_wait(const soak::Records& records);

/// How often two grants of a name that follow each other were in two stores.
std::size_t flips_seen(const soak::Records& records);

/// All that is known of a name from some seconds before a moment until shortly after it: for
/// whoever has to find out.
std::string story_of(const FleetRun& run, const std::string& name, TimePoint when);

/// Grants by store.
std::map<std::string, std::size_t> grants_by_store(const soak::Records& records);

}  // namespace dlock::fleet
