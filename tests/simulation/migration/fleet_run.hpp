// SPDX-License-Identifier: Apache-2.0
//
// FleetRun: what the runs of all fleets have in common: a world with an observer, and the calm at
// the end, in which everybody gets what he wants and comes to his end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"
#include "tests/simulation/migration/fleet_program.hpp"

namespace dlock::simulation::migration {

struct RunResult {
  checkers::Violations violations;
  std::uint64_t crashes = 0;
  std::string trace;
};

class FleetRun {
 public:
  FleetRun(const FleetRun&) = delete;
  FleetRun& operator=(const FleetRun&) = delete;

 protected:
  FleetRun(std::uint64_t seed, bool tracing);
  virtual ~FleetRun() = default;

  /// What goes wrong in a tenth of a second, and then that passes.
  virtual void tick() = 0;
  /// A process has taken a step.
  virtual void stepped() {}

  /// It takes part from now on, and outlives all use of the run.
  void begin(FleetProgram& program);
  void crash(FleetProgram& program);
  void run_for(Duration duration) { world_.run_until(world_.now() + duration); }
  void complain(std::string what) { complaints_.push_back({std::move(what), world_.now()}); }
  bool all_idle() const;

  /// Everybody works while all is whole, and is granted locks; who waits for the end after that may
  /// be waited for until the time returned.
  TimePoint work_in_calm();
  void wait_until_idle(TimePoint until);
  /// All programs close, and have that long for it.
  void close_all(Duration time);
  /// What was complained of comes after what stands there.
  void tell(RunResult& result);

  World world_;
  Recorder recorder_;
  Weather weather_;
  checkers::Violations complaints_;

 private:
  std::vector<FleetProgram*> programs_;
  std::uint64_t crashes_ = 0;
};

}  // namespace dlock::simulation::migration
