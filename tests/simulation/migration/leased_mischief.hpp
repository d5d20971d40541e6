// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong in a run with a leased gate, and how often.
#pragma once

#include "tests/simulation/migration/leased_program.hpp"

namespace dlock::simulation::migration {

/// The chance at each tick, for each program or for the run.
struct Mischief {
  double pauses = 0;
  double crashes = 0;
  double cuts = 0;    ///< a program is cut off from one of the stores
  double exiles = 0;  ///< ... from the gate's alone, for long
  double wipes = 0;   ///< of the source
  double aways = 0;   ///< of one of the stores
  double losses = 0;  ///< of the gate
  double stalls = 0;  ///< a program is paused when it gets an answer; at each
  double kills = 0;   ///< killed then

  /// Nothing goes wrong any more.
  void stop() noexcept { *this = {}; }
};

/// Of a run; also how its programs work and how messages fare.
Mischief choose_mischief(World& world, bool lossy, LeasedFleet& fleet, Weather& weather);

}  // namespace dlock::simulation::migration
