// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/move_run.hpp"

#include "tests/simulation/migration/judge.hpp"

namespace dlock::simulation::migration {

void MoveRun::choose_troubles(double loss, bool lossy_target) {
  if (world_.chance(0.5)) weather_.loss = loss;
  if (world_.chance(0.5)) weather_.late = 0.02;
  pauses_ = world_.chance(0.7) ? 0.02 : 0;
  crashes_ = world_.chance(0.7) ? 0.004 : 0;
  forgets_ = lossy_target ? 0.03 : 0;
}

void MoveRun::end_troubles() {
  weather_ = {};
  forgets_ = pauses_ = crashes_ = 0;
}

bool MoveRun::strike(Program& program) {
  auto& process = program.process();
  if (!process.is_alive() || process.is_paused()) return false;
  if (world_.chance(pauses_)) {
    process.pause();
    world_.after(world_.between(milliseconds(1), Duration(kLease) * 2), [&process] {
      if (process.is_paused()) process.resume();
    });
    return false;
  }
  if (!world_.chance(crashes_)) return false;
  crash(program);
  return true;
}

void MoveRun::forget(Server& target, const std::string& name) {
  const auto owner = target.forget(name);
  if (!owner.empty()) forgotten_.insert(owner);
}

void MoveRun::count(const Fleet& fleet, MoveResult& result) {
  stores_.insert(fleet.stores.begin(), fleet.stores.end());
  for (const auto& [grant, store] : fleet.stores) {
    ++(store == "s" ? result.grants_in_source : result.grants_in_target);
  }
  result.grants_of_target_only += fleet.target_only_grants;
  result.grants_of_source_only += fleet.source_only_grants;
}

void MoveRun::judge(MoveResult& result) {
  result.violations = migration::judge(recorder_, stores_, forgotten_);
  tell(result);
}

}  // namespace dlock::simulation::migration
