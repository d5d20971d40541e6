// SPDX-License-Identifier: Apache-2.0
//
// DualRival: another plan in mode dual over the same locks, and what its operator wants: it is
// started whenever that may be tried, and taken away some time after that was possible. One of the
// two is in effect at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/simulation/migration/dual_program.hpp"

namespace dlock::simulation::migration {

class DualRival {
 public:
  /// `back`: it leads from the target to the source.
  DualRival(World& world, DualFleet first, const Places& places, bool back);

  DualFleet& fleet() noexcept { return fleet_; }
  const DualFleet& fleet() const noexcept { return fleet_; }
  const Places& places() const noexcept { return places_; }
  bool leads_back() const noexcept { return back_; }
  /// Its window is open: its programs may be admitted.
  bool is_in_effect() const;
  /// Its programs end, and do not come again before it is gone.
  bool is_leaving() const noexcept { return fleet_.order == Order::withdraw; }
  /// Decides what is next. `must_go`: the other plan needs the locks.
  void look(bool must_go);
  /// No more commands.
  void rest(bool resting) noexcept { fleet_.resting = resting; }
  std::uint64_t times_in_effect() const noexcept { return times_in_effect_; }

 private:
  /// In a list, or with a window.
  bool is_there() const;

  World& world_;
  const bool back_;
  const Places places_;
  DualFleet fleet_;
  TimePoint next_;  ///< it is not started before, or not taken away
  bool was_in_effect_ = false;
  std::uint64_t times_in_effect_ = 0;
};

}  // namespace dlock::simulation::migration
