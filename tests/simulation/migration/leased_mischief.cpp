// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/leased_mischief.hpp"

namespace dlock::simulation::migration {

// Some courses of events are reached only where one kind of fault occurs alone.
Mischief choose_mischief(World& world, bool lossy, LeasedFleet& fleet, Weather& weather) {
  Mischief mischief;
  if (world.chance(0.4)) fleet.longest_think = seconds(4);
  if (world.chance(0.5)) {
    fleet.long_work = seconds(14);
    fleet.long_works = 0.3;
  }
  const auto kind = world.below(5);
  if (kind <= 1) {
    (kind == 0 ? mischief.exiles : mischief.cuts) = 0.03;
    fleet.long_work = seconds(20);
    fleet.long_works = 0.5;
    return mischief;
  }
  if (world.chance(0.5)) weather.loss = 0.02;
  if (world.chance(0.5)) weather.late = 0.02;
  if (world.chance(0.3)) weather.twice = 0.02;
  if (world.chance(0.6)) mischief.pauses = 0.01;
  if (world.chance(0.6)) mischief.crashes = 0.003;
  if (world.chance(0.6)) mischief.cuts = 0.01;
  if (lossy) mischief.wipes = world.chance(0.7) ? 0.01 : 0;
  if (world.chance(0.3)) mischief.aways = 0.003;
  if (world.chance(0.1)) mischief.losses = 0.005;
  if (world.chance(0.5)) mischief.stalls = 0.002;
  if (world.chance(0.3)) mischief.kills = 0.0005;
  return mischief;
}

}  // namespace dlock::simulation::migration
