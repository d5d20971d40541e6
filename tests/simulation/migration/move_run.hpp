// SPDX-License-Identifier: Apache-2.0
//
// MoveRun: what goes wrong in a run of mode move, and what the run is judged by.
#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/migration/fleet_run.hpp"
#include "tests/simulation/migration/program.hpp"

namespace dlock::simulation::migration {

struct MoveResult : RunResult {
  std::uint64_t grants_in_source = 0;
  std::uint64_t grants_in_target = 0;
  std::uint64_t grants_of_target_only = 0;
  std::uint64_t grants_of_source_only = 0;
  std::uint64_t returns = 0;  ///< plans that moved all back after the first was finished
};

class MoveRun : protected FleetRun {
 protected:
  using FleetRun::FleetRun;

  /// `loss`: of messages, if any get lost.
  void choose_troubles(double loss, bool lossy_target);
  void end_troubles();
  /// Some are paused, some killed: these.
  template <class P>
  std::vector<P*> strike(std::list<P>& programs) {
    std::vector<P*> died;
    for (auto& program : programs) {
      if (strike(program)) died.push_back(&program);
    }
    return died;
  }
  bool is_to_forget() { return world_.chance(forgets_); }
  void forget(Server& target, const std::string& name);

  void count(const Fleet& fleet, MoveResult& result);
  void judge(MoveResult& result);

 private:
  bool strike(Program& program);

  double pauses_ = 0;
  double crashes_ = 0;
  double forgets_ = 0;
  std::set<std::string> forgotten_;  ///< owners whose lock the target forgot
  std::map<GrantId, std::string> stores_;
};

}  // namespace dlock::simulation::migration
